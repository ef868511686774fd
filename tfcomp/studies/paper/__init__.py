"""Every figure and table of the paper, drawn from finished runs.

`figure_table` declares what each shows, which runs it needs, and the functions
beside it that draw it: from the data alone, from scores and measures, which
packed evidence has, or from trained networks, which lie in run folders.
"""

from tfcomp.studies.paper.figure_index import write_figures
from tfcomp.studies.paper.figure_table import read_figures

__all__ = ["read_figures", "write_figures"]
