"""Benchmarks; each module is run as `python -m benchmarks.<name>`."""
