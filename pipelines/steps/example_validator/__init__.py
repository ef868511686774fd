"""The step `example_validator`."""
