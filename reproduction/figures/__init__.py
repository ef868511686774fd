"""Every figure and table of the paper, drawn from finished runs."""
