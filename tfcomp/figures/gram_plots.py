"""Gram matrices: similarities of all pairs of points, ID before OOD."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.layout import add_panel_title
from tfcomp.figures.layout import finish_figure
from tfcomp.figures.region_marks import OUTLINE_COLOR

PANEL_SIZE = 2.5  # inches


def draw_gram_matrices(
    matrices: Mapping[str, ArrayLike], num_id: int, *, title: str = ""
) -> Figure:
    """Draws Gram matrices side by side, each from 0 (dark) to 1.

    Args:
        matrices: Title of a panel to its similarities, [n, n], all of one
            size, with ID points before OOD points.
        num_id: Number of ID points; lines are drawn behind them.
        title: Title of the figure.

    Returns:
        The figure; the first point is at the upper left.

    Raises:
        ValueError: If the matrices differ in size or are not square.
    """
    arrays = {name: np.asarray(m, float) for name, m in matrices.items()}
    size = _get_size(arrays, num_id)
    figure = Figure(
        figsize=(PANEL_SIZE * len(arrays) + 1.0, PANEL_SIZE + 0.9),
        layout="constrained",
    )
    grid = figure.subplots(1, len(arrays), squeeze=False)[0]
    for axes, (name, array) in zip(grid, arrays.items(), strict=True):
        image = axes.imshow(array, vmin=0.0, vmax=1.0, interpolation="auto")
        if num_id < size:
            axes.axhline(num_id - 0.5, color=OUTLINE_COLOR, linewidth=1.0)
            axes.axvline(num_id - 0.5, color=OUTLINE_COLOR, linewidth=1.0)
        middles = [num_id / 2, (num_id + size) / 2] if num_id < size else []
        axes.set_xticks(middles, ["ID", "OOD"][: len(middles)])
        axes.set_yticks(middles, ["ID", "OOD"][: len(middles)])
        axes.tick_params(length=0)
        add_panel_title(axes, name, PANEL_SIZE)
    figure.colorbar(image, ax=list(grid), label="similarity", pad=0.02)
    finish_figure(figure, title)
    return figure


def _get_size(arrays: Mapping[str, np.ndarray], num_id: int) -> int:
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) != 1 or len(set(next(iter(shapes)))) != 1:
        raise ValueError(
            "matrices must be square and of one size, received "
            f"{sorted(shapes)}."
        )
    size = next(iter(shapes))[0]
    if not 0 <= num_id <= size:
        raise ValueError(f"num_id must be in 0 to {size}, received {num_id}.")
    return size
