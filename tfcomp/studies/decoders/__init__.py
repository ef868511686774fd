"""Comparison of decoders on splits, and of splits by what determines them."""
