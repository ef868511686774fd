"""The step `example_gen`."""
