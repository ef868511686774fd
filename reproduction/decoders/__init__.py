"""Comparison of decoders on splits, and of splits by their certificates."""
