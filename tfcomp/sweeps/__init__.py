"""Sweeps: many runs on a Dask cluster, and their statistics."""
