"""The step `evaluator`."""
