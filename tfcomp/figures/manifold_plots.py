"""Manifolds: two-dimensional embeddings of the activations of every stage.

Figure 9b of the paper, where one factor makes a curve; and the same for any
number of factors, as a cloud of points coloured by one factor after the other.
"""

import math
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.layout import add_legend
from tfcomp.figures.layout import add_panel_title
from tfcomp.figures.layout import add_title
from tfcomp.figures.layout import settle_layout
from tfcomp.figures.region_marks import OUTLINE_COLOR
from tfcomp.figures.region_marks import OUTLINE_LABEL

PANEL_SIZE = 2.3  # inches
MAX_COLUMNS = 6
CMAP = "viridis"
# Its ends are equal, as are those of a periodic factor.
PERIODIC_CMAP = "twilight"
_ID_LABEL = "training region"
_NO_VALUE_TEXT = "no variance"
# The ends of the cyclic colours are nearly white.
_EDGES = {"linewidths": 0.25, "edgecolors": "0.3"}


def draw_manifolds(
    embeddings: Mapping[str, ArrayLike],
    factors: ArrayLike,
    is_ood: ArrayLike,
    *,
    factor_names: Sequence[str],
    periodic: Sequence[bool] | None = None,
    title: str = "",
) -> Figure:
    """Draws every stage as points, in a row of panels per factor.

    Axes have no units and no ticks: in an embedding only neighbourhoods mean
    something.

    Args:
        embeddings: Name of a stage to the places of its points, `[n, 2]`;
            points that are not finite, as in a dead stage, are left out.
        factors: Factor values of the points, `[n, F]`.
        is_ood: Whether each point lies in the held-out region, `[n]`; these
            have another marker.
        factor_names: Names of the factors, with units.
        periodic: Whether each factor is, which have cyclic colours.
        title: Title of the figure.

    Returns:
        The figure.
    """
    places = _to_places(embeddings)
    factors = np.asarray(factors, float)
    is_ood = np.asarray(is_ood, bool)
    count = len(next(iter(places.values())))
    _check_shape("is_ood", is_ood, (count,))
    _check_shape("factors", factors, (count, len(factor_names)))
    cyclic = periodic or [False] * len(factor_names)
    figure, panels = _make_panels(len(factor_names), len(places))
    for i, row in enumerate(panels):
        colors = _make_colors(factors[:, i], cyclic[i])
        for axes, points in zip(row, places.values(), strict=True):
            _draw_points(axes, points, colors.to_rgba(factors[:, i]), is_ood)
        figure.colorbar(colors, ax=list(row), label=factor_names[i], pad=0.01)
    for axes, stage in zip(panels[0], places, strict=True):
        add_panel_title(axes, stage, PANEL_SIZE)
    _finish(figure, title)
    return figure


def draw_manifold_curves(
    embeddings: Mapping[str, ArrayLike],
    values: ArrayLike,
    is_ood: ArrayLike,
    *,
    factor_name: str,
    periodic: bool = False,
    title: str = "",
) -> Figure:
    """Draws every stage as a curve along one factor, the gap marked.

    Args:
        embeddings: Name of a stage to the places of its points, `[n, 2]`, in
            the order of the factor; not finite, as in a dead stage, is left
            out.
        values: Of the factor, `[n]`, rising.
        is_ood: Whether each point lies in the gap, `[n]`. Steps with an end
            in it are underlaid.
        factor_name: Name of the factor, with its unit.
        periodic: Whether the last point is followed by the first.
        title: Title of the figure.

    Returns:
        The figure.
    """
    places = _to_places(embeddings)
    values = np.asarray(values, float)
    is_ood = np.asarray(is_ood, bool)
    count = len(next(iter(places.values())))
    _check_shape("values", values, (count,))
    _check_shape("is_ood", is_ood, (count,))
    num_rows = math.ceil(len(places) / MAX_COLUMNS)
    figure, grid = _make_panels(num_rows, math.ceil(len(places) / num_rows))
    panels = list(grid.ravel())
    for axes in panels[len(places) :]:
        axes.remove()
    colors = _make_colors(values, periodic)
    shades = colors.to_rgba(values)
    for axes, (stage, points) in zip(panels, places.items(), strict=False):
        _draw_curve(axes, points, shades, is_ood, periodic)
        add_panel_title(axes, stage, PANEL_SIZE)
    shown = panels[: len(places)]
    figure.colorbar(colors, ax=shown, label=factor_name, pad=0.01)
    _finish(figure, title)
    return figure


def _make_panels(num_rows: int, num_columns: int) -> tuple[Figure, np.ndarray]:
    # The additions make room for colour bars, titles and legend.
    figure = Figure(
        figsize=(
            num_columns * PANEL_SIZE + 1.2,
            num_rows * (PANEL_SIZE + 0.1) + 1.1,
        ),
        layout="compressed",
    )
    panels = figure.subplots(num_rows, num_columns, squeeze=False)
    for axes in panels.ravel():
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_box_aspect(1)
    return figure, panels


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
            # The legend has a colour that stands for no value.
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
        axes.add_collection(
            LineCollection(
                steps[touches],
                colors=OUTLINE_COLOR,
                linewidths=7,
                alpha=0.35,
                capstyle="round",
                label=OUTLINE_LABEL,
            )
        )
    axes.add_collection(LineCollection(steps, colors="0.45", linewidths=0.8))
    axes.scatter(*points.T, c=shades, s=10, zorder=3, **_EDGES)
    _note_absence(axes, points)


def _note_absence(axes: Axes, points: np.ndarray) -> None:
    if not np.isfinite(points).any():
        center = {"ha": "center", "va": "center"}
        axes.text(0.5, 0.5, _NO_VALUE_TEXT, transform=axes.transAxes, **center)


def _finish(figure: Figure, title: str) -> None:
    add_title(figure, title)
    add_legend(figure)
    settle_layout(figure)


def _to_places(embeddings: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    places = {name: np.asarray(e, float) for name, e in embeddings.items()}
    shapes = {name: array.shape for name, array in places.items()}
    is_pair = all(len(s) == 2 and s[1] == 2 for s in shapes.values())
    if not shapes or len(set(shapes.values())) != 1 or not is_pair:
        raise ValueError(
            "embeddings must have at least one entry, all of one shape "
            f"[n, 2], received {shapes}."
        )
    return places


def _check_shape(
    name: str, array: np.ndarray, expected: tuple[int, ...]
) -> None:
    if array.shape != expected:
        raise ValueError(
            f"{name} must have shape {expected}, received {array.shape}."
        )
