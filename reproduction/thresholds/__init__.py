"""Searches for the data that a decoder needs (section 4.2, figure 4c)."""
