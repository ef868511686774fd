"""The experiments of the paper, one file each, with the claims they test."""
