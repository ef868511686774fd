"""Describes runs: settings, flags, and errors that name them."""
