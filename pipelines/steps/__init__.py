"""The steps of the pipeline: component (interface) and executor (work)."""
