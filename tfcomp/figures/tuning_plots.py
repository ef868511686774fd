"""Tuning of single units: maps with marginals, and how additive stages are.

Figures 4f and 15 of the paper show units of one stage; the distribution of
their additive shares says what its text reads off them, stage by stage.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap, Plane
from tfcomp.figures.cells import (
    NO_VALUE_COLOR,
    get_map_aspect,
    label_values,
    shade_values,
    show_map,
)
from tfcomp.figures.layout import add_panel_title, finish_figure
from tfcomp.figures.line_style import LINE_COLORS, finish_axes

ROW_HEIGHT = 1.75  # inches
STAGE_WIDTH = 1.0
_NUM_BINS = 25


def draw_tuning(
    units: Mapping[str, GridMap], plane: Plane, *, title: str = ""
) -> Figure:
    """Draws a row per unit: its map, and its mean as a function of a factor.

    Every map has a color scale of its own, since activations of different
    units do not compare; the marginals of a unit share one axis. What is not
    finite is gray. The region of held-out points is outlined in maps, which
    show a plane; on the marginals the values that occur in it are shaded.
    """
    factors = next(iter(units.values())).factors
    width = ROW_HEIGHT * get_map_aspect([f.size for f in plane.factors])
    figure, panels = _make_rows(len(units), len(factors), width)
    for row, (name, unit) in zip(panels, units.items(), strict=True):
        image = show_map(row[0], unit.cut(plane), linewidth=1.2)
        bar = figure.colorbar(image, ax=row[0], aspect=12, pad=0.04)
        bar.locator = MaxNLocator(3)
        bar.update_ticks()
        add_panel_title(row[0], name, width)
        _draw_marginals(row[1:], unit)
        row[0].set_ylabel(plane.factors[1].label)
    _name_columns(panels, plane.factors[0], factors)
    is_finite = all(np.isfinite(unit.values).all() for unit in units.values())
    finish_figure(figure, title, None if is_finite else NO_VALUE_COLOR)
    return figure


def draw_index_distribution(
    values: Mapping[str, ArrayLike], *, label: str, title: str = ""
) -> Figure:
    """Draws how an index from 0 to 1 is distributed over units, by stage.

    A histogram per stage, mirrored like a violin and as wide as its
    fullest bin, with the mean and the median. Units without a value (NaN), as
    dead ones, are left out and counted above.
    """
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


def _make_rows(
    num_rows: int, num_factors: int, width: float
) -> tuple[Figure, np.ndarray]:
    ratios = (width + 0.6, *[2.0] * num_factors)
    size = sum(ratios) + 1.6, num_rows * (ROW_HEIGHT + 0.3) + 0.7
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    panels = figure.subplots(
        num_rows, len(ratios), squeeze=False, width_ratios=ratios
    )
    return figure, panels


def _draw_marginals(panels: Sequence[Axes], unit: GridMap) -> None:
    for axis, axes in enumerate(panels):
        marginal = unit.average(axis)
        (factor,), values = marginal.factors, marginal.values
        style = "o" if factor.categorical else "-"  # names have no order
        axes.plot(np.arange(len(values)), values, style, color=LINE_COLORS[0])
        axes.set_xlim(-0.5, len(values) - 0.5)
        if marginal.mask is not None:
            shade_values(axes, marginal.mask)
        finish_axes(axes)
        label_values(axes.xaxis, factor)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[1:]:
        axes.sharey(panels[0])
        axes.tick_params(labelleft=False)
    panels[0].autoscale(axis="y")


def _name_columns(
    panels: np.ndarray, first: Factor, factors: Sequence[Factor]
) -> None:
    """Labels the outer axes only, since all rows have the same ones."""
    for axes in panels[:-1].ravel():
        axes.tick_params(labelbottom=False)
    for axes, factor in zip(panels[-1], (first, *factors), strict=True):
        axes.set_xlabel(factor.label)
    for axes, factor in zip(panels[0, 1:], factors, strict=True):
        others = [f.name for f in factors if f != factor]
        what = others[0] if len(others) == 1 else "the others"
        axes.set_title(f"mean over {what}", fontsize=11)


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
