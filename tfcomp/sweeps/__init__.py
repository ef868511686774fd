"""Sweeps: many runs on a Dask cluster, and their statistics.

`grid` lists the runs of a sweep, `workload` runs those that are not finished,
`scheduling` sends them to workers, and `sweep_...` write results.
"""
