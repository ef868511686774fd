"""Similarities of all pairs of points, ID before OOD, or of what has names."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.argument_checks import require
from tfcomp.figures.layout import add_panel_title, finish_figure
from tfcomp.figures.region_marks import OUTLINE_COLOR

PANEL_SIZE = 2.5  # inches


def draw_gram_matrices(
    matrices: Mapping[str, ArrayLike],
    num_id: int,
    *,
    title: str = "",
    names: Sequence[str] = (),
) -> Figure:
    """Draws Gram matrices side by side, each from 0 (dark) to 1.

    All are of one size [n, n], with ID points before OOD points, between which
    lines are drawn. The first point is at the upper left. Few enough to be
    named have names instead, in place of ID and OOD.
    """
    arrays = {name: np.asarray(m, float) for name, m in matrices.items()}
    shapes = {array.shape for array in arrays.values()}
    size = max(chain(*shapes), default=0)
    rule = "matrices must be square and of one size"
    require(shapes == {(size, size)}, rule, sorted(shapes))
    require(0 <= num_id <= size, f"num_id must be in 0 to {size}", num_id)
    groups = {"ID": num_id / 2, "OOD": (num_id + size) / 2}
    groups = groups if num_id < size else {}
    ticks = {name: place for place, name in enumerate(names)} or groups
    figure = Figure(
        figsize=(PANEL_SIZE * len(arrays) + 1.0, PANEL_SIZE + 0.9),
        layout="constrained",
    )
    grid = figure.subplots(1, len(arrays), squeeze=False)[0]
    for axes, (name, array) in zip(grid, arrays.items(), strict=True):
        image = axes.imshow(array, vmin=0.0, vmax=1.0, interpolation="auto")
        if groups:
            axes.axhline(num_id - 0.5, color=OUTLINE_COLOR, linewidth=1.0)
            axes.axvline(num_id - 0.5, color=OUTLINE_COLOR, linewidth=1.0)
        turn = 90 if names else 0
        axes.set_xticks(list(ticks.values()), list(ticks), rotation=turn)
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.tick_params(length=0)
        add_panel_title(axes, name, PANEL_SIZE)
    figure.colorbar(image, ax=list(grid), label="similarity", pad=0.02)
    finish_figure(figure, title)
    return figure
