"""The step `trainer`."""
