"""Sweeps: many runs, each its own process, and their statistics.

`scheduling` runs any commands on a Dask cluster; `grid` says which runs a
sweep has; `tables` and `figures` say what came out.
"""
