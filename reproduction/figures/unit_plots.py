"""Tuning of single units: their maps, and their means over the others."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from tfcomp.datasets.grid_maps import GridMap, Plane
from tfcomp.figures import exhibits, map_plots
from tfcomp.figures.curve_plots import LINE_COLORS, finish_axes, shade_interval
from tfcomp.figures.exhibits import Plot

ROW_HEIGHT = 1.75  # inches, of a unit


def draw_tuning(
    units: Mapping[str, GridMap], plane: Plane, *, title: str = ""
) -> Plot:
    """Draws a row per unit: its map, and its mean as a function of a factor."""
    factors = next(iter(units.values())).factors
    x, y = plane.factors
    map_width = ROW_HEIGHT * map_plots.get_map_aspect((x.size, y.size))
    ratios = [map_width + 0.6] + [2.0] * len(factors)
    size = (sum(ratios) + 1.6, len(units) * (ROW_HEIGHT + 0.3) + 0.7)
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    figure = exhibits.make_figure(size, layout=engine)
    panels = figure.subplots(
        len(units), len(ratios), width_ratios=ratios, squeeze=False
    )
    for row, (name, unit) in zip(panels, units.items(), strict=True):
        image = map_plots.show_map(row[0], unit.cut(plane), linewidth=1.2)
        bar = figure.colorbar(image, ax=row[0], aspect=12, pad=0.04)
        bar.locator = MaxNLocator(3)
        bar.update_ticks()
        exhibits.add_panel_title(row[0], name, map_width)
        row[0].set_ylabel(y.label)
        _draw_marginals(row[1:], unit)

    # All rows have the same axes: the outer ones alone are named.
    for axes in panels[:-1].ravel():
        axes.tick_params(labelbottom=False)
    for axes, factor in zip(panels[-1], (x, *factors), strict=True):
        axes.set_xlabel(factor.label)
    for axes, factor in zip(panels[0, 1:], factors, strict=True):
        others = [other.name for other in factors if other != factor]
        text = others[0] if len(others) == 1 else "the others"
        axes.set_title(f"mean over {text}", fontsize=exhibits.scale_text(11))

    if not all(np.isfinite(unit.values).all() for unit in units.values()):
        map_plots.explain_gaps(panels[0, 0], map_plots.NO_VALUE_COLOR)
    table = partial(map_plots.tabulate_maps, units)
    return exhibits.finish_figure(figure, title, table)


def _draw_marginals(panels: Sequence[Axes], unit: GridMap) -> None:
    for axis, axes in enumerate(panels):
        marginal = unit.average(axis)
        (factor,) = marginal.factors
        values = marginal.values
        style = "o" if factor.categorical else "-"  # names have no order
        axes.plot(np.arange(len(values)), values, style, color=LINE_COLORS[0])
        axes.set_xlim(-0.5, len(values) - 0.5)
        if marginal.mask is not None and not marginal.mask.all():
            for place in np.flatnonzero(marginal.mask):
                shade_interval(axes, place - 0.5, place + 0.5)
        finish_axes(axes)
        map_plots.label_values(axes.xaxis, factor)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[1:]:
        axes.sharey(panels[0])
        axes.tick_params(labelleft=False)
    panels[0].autoscale(axis="y")
