"""Sweeps: many runs, each its own process, and their statistics.

`grid` and `trials` list the runs of a sweep, `workload` runs those that are
not finished, `scheduling` starts processes on a Dask cluster, and the modules
named `sweep_...` write tables, statistics and figures.
"""
