"""Tuning of single units: maps with marginals, and how additive stages are.

Figures 4f and 15 of the paper show units of one stage; the distribution of
their additive shares says what its text reads off them, stage by stage.
"""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.figures.argument_checks import require
from tfcomp.figures.argument_checks import require_shape
from tfcomp.figures.cells import NO_VALUE_COLOR
from tfcomp.figures.cells import get_map_aspect
from tfcomp.figures.cells import show_map
from tfcomp.figures.layout import add_panel_title
from tfcomp.figures.layout import finish_figure
from tfcomp.figures.line_style import LINE_COLORS
from tfcomp.figures.line_style import finish_axes
from tfcomp.figures.region_marks import shade_values

ROW_HEIGHT = 1.75  # inches
STAGE_WIDTH = 1.0
_NUM_BINS = 25


def draw_tuning(
    maps: ArrayLike,
    labels: Sequence[str],
    mask: ArrayLike | None,
    *,
    axis_names: tuple[str, str],
    title: str = "",
) -> Figure:
    """Draws a row per unit: its map, and its mean over either factor.

    Every map has a color scale of its own, since activations of different
    units do not compare; the two marginals of a unit share one axis.

    Args:
        maps: Activations, `[k, nx, ny]`; not finite is shown in gray.
        labels: Name of every unit, k of them.
        mask: True inside the region to mark, `[nx, ny]`; None without one.
            On the marginals the values of a factor that occur in it are
            shaded.
        axis_names: Names of the first and the second factor, with units.
        title: Of the figure.
    """
    maps = np.asarray(maps, float)
    rule = "maps must have shape [k, nx, ny] with at least one unit"
    require(maps.ndim == 3 and len(maps), rule, maps.shape)
    require_shape("labels", labels, maps.shape[:1])
    if mask is not None:
        require_shape("mask", mask, maps.shape[1:])
    width = ROW_HEIGHT * get_map_aspect(maps.shape[1:])
    figure, panels = _make_rows(len(maps), width)
    for unit, row in enumerate(panels):
        image = show_map(row[0], maps[unit], mask, linewidth=1.2)
        bar = figure.colorbar(image, ax=row[0], aspect=12, pad=0.04)
        bar.locator = MaxNLocator(3)
        bar.update_ticks()
        add_panel_title(row[0], labels[unit], width)
        _draw_marginals(row[1:], maps[unit], mask)
        row[0].set_ylabel(axis_names[1])
    _name_columns(panels, axis_names)
    is_finite = np.isfinite(maps).all()
    finish_figure(figure, title, None if is_finite else NO_VALUE_COLOR)
    return figure


def draw_index_distribution(
    values: Mapping[str, ArrayLike], *, label: str, title: str = ""
) -> Figure:
    """Draws how an index from 0 to 1 is distributed over units, by stage.

    A histogram per stage, mirrored like a violin and as wide as its
    fullest bin, with the mean and the median. Units without a value, as dead
    ones, are left out and counted above.

    Args:
        values: Name of a stage to an index per unit, `[units]`, NaN where
            there is none.
        label: What the index is.
        title: Of the figure.
    """
    require(values, "values must have at least one stage")
    stages = {k: np.ravel(np.asarray(v, float)) for k, v in values.items()}
    width = max(4.5, STAGE_WIDTH * len(stages) + 1.2)
    figure = Figure(figsize=(width, 3.5), layout="compressed")
    axes = figure.subplots()
    for place, index in enumerate(stages.values()):
        _draw_histogram(axes, place, index)
    _draw_centers(axes, [v[np.isfinite(v)] for v in stages.values()])
    finish_axes(axes)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(stages)), list(stages))
    axes.set(xlim=(-0.6, len(stages) - 0.4), ylim=(-0.03, 1.12), ylabel=label)
    axes.set_yticks(np.linspace(0, 1, 6))
    finish_figure(figure, title)
    return figure


def _make_rows(num_rows: int, width: float) -> tuple[Figure, np.ndarray]:
    ratios = (width + 0.6, 2.0, 2.0)
    size = sum(ratios) + 1.6, num_rows * (ROW_HEIGHT + 0.3) + 0.7
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    panels = figure.subplots(num_rows, 3, squeeze=False, width_ratios=ratios)
    return figure, panels


def _draw_marginals(
    panels: Sequence[Axes], unit_map: np.ndarray, mask: ArrayLike | None
) -> None:
    for axis, axes in enumerate(panels):
        values = unit_map.mean(axis=1 - axis)
        axes.plot(np.arange(len(values)), values, color=LINE_COLORS[0])
        axes.set_xlim(-0.5, len(values) - 0.5)
        if mask is not None:
            shade_values(axes, np.asarray(mask, bool).any(axis=1 - axis))
        finish_axes(axes)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    panels[1].sharey(panels[0])
    panels[0].autoscale(axis="y")
    panels[1].tick_params(labelleft=False)


def _name_columns(panels: np.ndarray, axis_names: tuple[str, str]) -> None:
    """Labels the outer axes only, since all rows have the same ones."""
    for axes in panels[:-1].ravel():
        axes.tick_params(labelbottom=False)
    lowest = zip(panels[-1], (axis_names[0], *axis_names), strict=True)
    for axes, name in lowest:
        axes.set_xlabel(name)
    for axes, name in zip(panels[0, 1:], axis_names[::-1], strict=True):
        axes.set_title(f"mean over {name.partition(' (')[0]}", fontsize=11)


def _draw_histogram(axes: Axes, place: int, index: np.ndarray) -> None:
    finite = index[np.isfinite(index)]
    counts, edges = np.histogram(finite, bins=_NUM_BINS, range=(0, 1))
    widths = 0.84 * counts / max(1, counts.max())
    axes.barh(
        edges[:-1],
        widths,
        left=place - widths / 2,
        height=np.diff(edges),
        align="edge",
        color=LINE_COLORS[5],
        alpha=0.55,
        linewidth=0,
    )
    if finite.size < index.size:
        text = f"{1 - finite.size / index.size:.1%} dead".replace(".0%", "%")
        axes.text(place, 1.06, text, ha="center", va="center", fontsize=9)


def _draw_centers(axes: Axes, finite: Sequence[np.ndarray]) -> None:
    places = [i for i, index in enumerate(finite) if index.size]
    means = [np.mean(finite[i]) for i in places]
    medians = [np.median(finite[i]) for i in places]
    axes.plot(places, means, "o-", color=LINE_COLORS[0], label="mean")
    bars = {"markersize": 22, "markeredgewidth": 2, "label": "median"}
    axes.plot(places, medians, "_", color=LINE_COLORS[4], **bars)
