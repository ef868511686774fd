"""Manifolds: two-dimensional embeddings of the activations of every stage.

Figure 9b of the paper, where one factor makes a curve, and the same for any
number of factors: a cloud of points, colored by one factor after the other.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures.cells import OUTLINE_COLOR, OUTLINE_LABEL
from tfcomp.figures.layout import (
    add_panel_title,
    arrange_panels,
    finish_figure,
    keep_panels,
    make_panels,
)

PANEL_SIZE = 2.3  # inches
MAX_COLUMNS = 6
CMAP = "viridis"
# Its ends are equal, as are those of a periodic factor.
PERIODIC_CMAP = "twilight"
_ID_LABEL = "training region"
_NO_VALUE_TEXT = "no variance"
# The ends of the cyclic colors are nearly white.
_EDGES = {"linewidths": 0.25, "edgecolors": "0.3"}


def draw_manifolds(
    embeddings: Mapping[str, ArrayLike],
    factors: ArrayLike,
    is_ood: ArrayLike,
    *,
    space: Sequence[Factor],
    title: str = "",
) -> Figure:
    """Draws every stage: one factor as a curve, several as colored points.

    Several factors have a block of panels each, in which the same points have
    the colors of that factor. Axes have no units and no ticks: in an embedding
    only neighborhoods mean something.

    Args:
        embeddings: Name of a stage to the places of its points, `[n, 2]`;
            points that are not finite, as in a dead stage, are left out.
        factors: Factor values of the points, `[n, F]`; of one factor rising.
        is_ood: Whether each point lies in the held-out region, `[n]`. On a
            curve the steps with an end in it are underlaid, among points it
            has another marker.
        space: The factors. A periodic one has cyclic colors, and the last
            point of its curve is followed by the first.
    """
    places = {name: np.asarray(e, float) for name, e in embeddings.items()}
    factors, is_ood = np.asarray(factors, float), np.asarray(is_ood, bool)
    rows, columns = arrange_panels(len(places), MAX_COLUMNS)
    figure, grid = _make_panels(rows * len(space), columns)
    is_curve = len(space) == 1 and not space[0].categorical
    for i, factor in enumerate(space):
        panels = keep_panels(grid[i * rows : (i + 1) * rows], len(places))
        colors = _make_colors(factors[:, i], factor.periodic)
        shades = colors.to_rgba(factors[:, i])
        for axes, (stage, points) in zip(panels, places.items(), strict=True):
            if is_curve:
                _draw_curve(axes, points, shades, is_ood, factor.periodic)
            else:
                _draw_points(axes, points, shades, is_ood)
            if i == 0:
                add_panel_title(axes, stage, PANEL_SIZE)
        bar = figure.colorbar(colors, ax=panels, label=factor.label, pad=0.01)
        if factor.names:
            bar.set_ticks(factor.values(), labels=factor.names)
    finish_figure(figure, title)
    return figure


def _make_panels(num_rows: int, num_columns: int) -> tuple[Figure, np.ndarray]:
    # The additions make room for color bars and titles.
    size = num_columns * PANEL_SIZE + 1.2, num_rows * (PANEL_SIZE + 0.1) + 0.8
    figure, grid = make_panels((num_rows, num_columns), size, pad=0.04)
    for axes in grid.ravel():
        axes.set(xticks=[], yticks=[])
        axes.set_box_aspect(1)
    return figure, grid


def _make_colors(values: np.ndarray, periodic: bool) -> ScalarMappable:
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
    if periodic and finite.size > 1:
        # The value after the last one is the first one again.
        high += (high - low) / (len(np.unique(finite)) - 1)
    cmap = PERIODIC_CMAP if periodic else CMAP
    return ScalarMappable(Normalize(low, high), cmap)


def _draw_points(
    axes: Axes, points: np.ndarray, shades: np.ndarray, is_ood: np.ndarray
) -> None:
    looks = {_ID_LABEL: (~is_ood, "o", 6), OUTLINE_LABEL: (is_ood, "D", 18)}
    for label, (rows, marker, size) in looks.items():
        look = {"marker": marker, "s": size, **_EDGES}
        if rows.any():
            axes.scatter(*points[rows].T, c=shades[rows], **look)
            # The legend has a color that stands for no value.
            axes.scatter([], [], facecolor="0.6", label=label, **look)
    _note_absence(axes, points)


def _draw_curve(
    axes: Axes,
    points: np.ndarray,
    shades: np.ndarray,
    is_ood: np.ndarray,
    periodic: bool,
) -> None:
    after = np.roll(points, -1, axis=0)
    steps = np.stack([points, after], axis=1)  # [n, 2 ends, 2]
    touches = is_ood | np.roll(is_ood, -1)
    if not periodic:
        steps, touches = steps[:-1], touches[:-1]
    if touches.any():
        look = {"linewidths": 7, "alpha": 0.35, "capstyle": "round"}
        look |= {"colors": OUTLINE_COLOR, "label": OUTLINE_LABEL}
        axes.add_collection(LineCollection(steps[touches], **look))
    axes.add_collection(LineCollection(steps, colors="0.45", linewidths=0.8))
    axes.scatter(*points.T, c=shades, s=10, zorder=3, **_EDGES)
    _note_absence(axes, points)


def _note_absence(axes: Axes, points: np.ndarray) -> None:
    if not np.isfinite(points).any():
        center = {"ha": "center", "va": "center"}
        axes.text(0.5, 0.5, _NO_VALUE_TEXT, transform=axes.transAxes, **center)
