"""Tuning of units: maps with marginals (figures 4f, 15), additive shares."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.grid_maps import GridMap, Plane
from tfcomp.figures import cells, layout
from tfcomp.figures.line_style import LINE_COLORS, finish_axes

ROW_HEIGHT = 1.75  # inches


def draw_tuning(
    units: Mapping[str, GridMap], plane: Plane, *, title: str = ""
) -> Figure:
    """Draws a row per unit: its map, and its mean as a function of a factor.

    Maps show a plane, and each has a color scale of its own; the marginals of
    a unit share one axis. What is not finite is gray, and what was held out is
    outlined or, on marginals, shaded.
    """
    factors = next(iter(units.values())).factors
    nx, ny = (factor.size for factor in plane.factors)
    width = ROW_HEIGHT * cells.get_map_aspect((nx, ny))
    ratios = (width + 0.6, *[2.0] * len(factors))
    size = sum(ratios) + 1.6, len(units) * (ROW_HEIGHT + 0.3) + 0.7
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    figure = layout.make_figure(size, layout=engine)
    shape: dict[str, Any] = {"width_ratios": ratios, "squeeze": False}
    panels = figure.subplots(len(units), len(ratios), **shape)
    for row, (name, unit) in zip(panels, units.items(), strict=True):
        image = cells.show_map(row[0], unit.cut(plane), linewidth=1.2)
        bar = figure.colorbar(image, ax=row[0], aspect=12, pad=0.04)
        bar.locator = MaxNLocator(3)
        bar.update_ticks()
        layout.add_panel_title(row[0], name, width)
        _draw_marginals(row[1:], unit)
        row[0].set_ylabel(plane.factors[1].label)
    # All rows have the same axes: the outer ones alone are named.
    for axes in panels[:-1].ravel():
        axes.tick_params(labelbottom=False)
    shown = (plane.factors[0], *factors)
    for axes, factor in zip(panels[-1], shown, strict=True):
        axes.set_xlabel(factor.label)
    for axes, factor in zip(panels[0, 1:], factors, strict=True):
        others = [f.name for f in factors if f != factor]
        what = others[0] if len(others) == 1 else "the others"
        axes.set_title(f"mean over {what}", fontsize=layout.scale_text(11))
    is_finite = all(np.isfinite(unit.values).all() for unit in units.values())
    layout.finish_figure(
        figure, title, None if is_finite else cells.NO_VALUE_COLOR
    )
    return figure


def draw_index_distribution(
    values: Mapping[str, ArrayLike], *, label: str, title: str = ""
) -> Figure:
    """Draws how an index from 0 to 1 is distributed over units, by stage.

    A mirrored histogram per stage, as wide as its fullest bin, with the mean
    and the median. Units without a value (NaN) are counted above.
    """
    stages = {k: np.ravel(np.asarray(v, float)) for k, v in values.items()}
    width = max(4.5, len(stages) + 1.2)
    figure = layout.make_figure((width, 3.5), layout="compressed")
    axes = figure.subplots()
    for place, index in enumerate(stages.values()):
        _draw_histogram(axes, place, index)
    finite = {i: v[np.isfinite(v)] for i, v in enumerate(stages.values())}
    alive = {place: index for place, index in finite.items() if index.size}
    means = [np.mean(index) for index in alive.values()]
    medians = [np.median(index) for index in alive.values()]
    axes.plot([*alive], means, "o-", color=LINE_COLORS[0], label="mean")
    bars: dict[str, Any] = {
        "markersize": 22,
        "markeredgewidth": 2,
        "label": "median",
    }
    axes.plot([*alive], medians, "_", color=LINE_COLORS[4], **bars)
    finish_axes(axes)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(stages)), list(stages))
    axes.set(xlim=(-0.6, len(stages) - 0.4), ylim=(-0.03, 1.12), ylabel=label)
    axes.set_yticks(np.linspace(0, 1, 6))
    layout.finish_figure(figure, title)
    return figure


def _draw_marginals(panels: Sequence[Axes], unit: GridMap) -> None:
    for axis, axes in enumerate(panels):
        marginal = unit.average(axis)
        (factor,), values = marginal.factors, marginal.values
        style = "o" if factor.categorical else "-"  # names have no order
        axes.plot(np.arange(len(values)), values, style, color=LINE_COLORS[0])
        axes.set_xlim(-0.5, len(values) - 0.5)
        if marginal.mask is not None:
            cells.shade_values(axes, marginal.mask)
        finish_axes(axes)
        cells.label_values(axes.xaxis, factor)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[1:]:
        axes.sharey(panels[0])
        axes.tick_params(labelleft=False)
    panels[0].autoscale(axis="y")


def _draw_histogram(axes: Axes, place: int, index: np.ndarray) -> None:
    finite = index[np.isfinite(index)]
    counts, edges = np.histogram(finite, bins=25, range=(0, 1))
    widths = 0.84 * counts / max(1, counts.max())
    look: dict[str, Any] = {
        "align": "edge",
        "color": LINE_COLORS[5],
        "alpha": 0.55,
        "lw": 0,
    }
    left, height = place - widths / 2, np.diff(edges)
    axes.barh(edges[:-1], widths, left=left, height=height, **look)
    if finite.size < index.size:
        text = f"{1 - finite.size / index.size:.1%} dead".replace(".0%", "%")
        axes.text(
            place,
            1.06,
            text,
            ha="center",
            va="center",
            fontsize=layout.scale_text(9),
        )
