"""Sweeps: many runs, each its own process, and their statistics.

`grid` lists the runs of a sweep, `workload` runs those that are not finished,
`scheduling` starts processes on a Dask cluster, and `sweep_...` write results.
"""
