"""Every figure and table of the paper, drawn from finished runs.

`paper_figure` declares what each shows and which runs it needs; what draws it
is beside it: from data, scores and measures, which packed evidence has, or
from trained networks, which lie in run folders.
"""
