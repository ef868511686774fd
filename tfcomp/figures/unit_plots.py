"""Parts of networks: tuning of units, and embeddings in pixel space."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap, Plane
from tfcomp.figures import layout, map_plots
from tfcomp.figures.curve_plots import LINE_COLORS, finish_axes, shade_interval
from tfcomp.figures.exhibits import Plot, melt

ROW_HEIGHT = 1.75  # inches, of a unit
MATRIX_SIZE = 0.8  # inches


def draw_tuning(
    units: Mapping[str, GridMap], plane: Plane, *, title: str = ""
) -> Plot:
    """Draws a row per unit: its map, and its mean as a function of a factor."""
    factors = next(iter(units.values())).factors
    nx, ny = (factor.size for factor in plane.factors)
    width = ROW_HEIGHT * map_plots.get_map_aspect((nx, ny))
    ratios = (width + 0.6, *[2.0] * len(factors))
    size = sum(ratios) + 1.6, len(units) * (ROW_HEIGHT + 0.3) + 0.7
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    figure = layout.make_figure(size, layout=engine)
    shape: dict[str, Any] = {"width_ratios": ratios, "squeeze": False}
    panels = figure.subplots(len(units), len(ratios), **shape)
    for row, (name, unit) in zip(panels, units.items(), strict=True):
        image = map_plots.show_map(row[0], unit.cut(plane), linewidth=1.2)
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
    table = partial(map_plots.tabulate_maps, units)
    return layout.finish_figure(
        figure, title, table, None if is_finite else map_plots.NO_VALUE_COLOR
    )


def _draw_marginals(panels: Sequence[Axes], unit: GridMap) -> None:
    for axis, axes in enumerate(panels):
        marginal = unit.average(axis)
        (factor,), values = marginal.factors, marginal.values
        style = "o" if factor.categorical else "-"  # names have no order
        axes.plot(np.arange(len(values)), values, style, color=LINE_COLORS[0])
        axes.set_xlim(-0.5, len(values) - 0.5)
        if marginal.mask is not None and not marginal.mask.all():
            for _, low, high in map_plots.find_runs(marginal.mask[np.newaxis]):
                shade_interval(axes, low, high)
        finish_axes(axes)
        map_plots.label_values(axes.xaxis, factor)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[1:]:
        axes.sharey(panels[0])
        axes.tick_params(labelleft=False)
    panels[0].autoscale(axis="y")


def draw_embeddings(
    matrices: ArrayLike,
    values: Sequence[str] | Sequence[float] | np.ndarray,
    *,
    factor_label: str,
    title: str = "",
) -> Plot:
    """Draws the matrices [V, rows, columns] of a factor on one color scale."""
    matrices = np.asarray(matrices, float)
    limit = _choose_limit(matrices)
    count, num_rows, num_columns = matrices.shape
    # The fullest grid at most twice as wide as high, of those the squarest.
    most = int(math.sqrt(2.0 * count))
    sizes = range(math.ceil(math.sqrt(count)), most + 1)
    wide = min(sizes, key=lambda n: (-count % n, n))
    high = math.ceil(count / wide)
    panel = MATRIX_SIZE * min(2.0, max(0.5, num_rows / num_columns))
    width = max(4.0, wide * MATRIX_SIZE + 1.2)
    height = max(2.6, high * (panel + 0.19) + 0.4 + 0.3 * bool(title))
    # With 64 panels a layout engine takes seconds.
    figure = layout.make_figure((width, height))
    places = {
        "left": 0.1 / width,
        "right": 1.0 - 1.1 / width,
        "bottom": 0.35 / height,
        "top": 1.0 - (0.25 + 0.3 * bool(title)) / height,
        "wspace": 0.05,
        "hspace": 0.19 / panel,
    }
    grid = figure.subplots(high, wide, squeeze=False, gridspec_kw=places)
    panels, norm = layout.keep_panels(grid, count), Normalize(-limit, limit)
    for axes, matrix, value in zip(panels, matrices, values, strict=True):
        image = map_plots.show_cells(axes, matrix, norm, "RdBu_r")
        title_of = value if isinstance(value, str) else f"{value:.3g}"
        axes.set_title(title_of, fontsize=layout.scale_text(8), pad=2)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(linewidth=0.5, color="0.5")
    finite = matrices[np.isfinite(matrices)]
    bar: dict[str, Any] = {"label": "entry"}
    if num_beyond := (np.abs(finite) > limit).sum():
        share = f"{100 * num_beyond / finite.size:.2g} %"
        bar = {"label": f"entry ({share} beyond the scale)", "extend": "both"}
    span = places["top"] - places["bottom"]
    beside = (1.0 - 0.95 / width, places["bottom"], 0.15 / width, span)
    figure.colorbar(image, cax=figure.add_axes(beside), **bar)
    # One line of text: a legend would lie on top of it.
    note = "" if finite.size == matrices.size else "; gray: no finite value"
    text = f"one matrix per value of {factor_label}{note}"
    figure.supxlabel(text, fontsize=layout.scale_text(10))
    named = dict(zip(map(str, values), matrices, strict=True))
    table = partial(melt, named, ("level", "row", "column"), "entry")
    return layout.finish_figure(figure, title, table)


def draw_spectrum(
    singular_values: ArrayLike, effective_rank: ArrayLike, *, title: str = ""
) -> Plot:
    """Draws singular values [V, R] relative to the largest of their matrix."""
    # Largest first, [V, R].
    spectrum = -np.sort(-np.asarray(singular_values, float), axis=1)
    is_drawn = np.isfinite(spectrum).all(axis=1) & (spectrum[:, 0] > 0)
    relative = spectrum[is_drawn] / spectrum[is_drawn, :1]
    figure = layout.make_figure((5.0, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set_yscale("log", nonpositive="clip")  # 0 is below, not a gap
    ranks = np.arange(1, spectrum.shape[1] + 1)
    label = f"one of {len(relative)} values"
    for line in relative:
        axes.plot(ranks, line, color="0.6", lw=0.6, alpha=0.7, label=label)
    if len(relative):
        mean = np.mean(np.asarray(effective_rank, float))
        axes.plot(
            ranks,
            np.median(relative, axis=0),
            "o-" if len(ranks) <= 16 else "-",
            color=LINE_COLORS[0],
            lw=2.4,
            ms=4,
            label=f"median (mean effective rank {mean:.3g})",
        )
    axes.set(xlim=(0.5, len(ranks) + 0.5), ylim=(1e-4, 1.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("index of the singular value")
    axes.set_ylabel("singular value / largest")
    finish_axes(axes)
    numbered = dict(zip(np.flatnonzero(is_drawn), relative, strict=True))
    table = partial(melt, numbered, ("matrix", "rank"), "share")
    return layout.finish_figure(figure, title, table)


def draw_profiles(
    profiles: Mapping[str, ArrayLike], *, factor: Factor, title: str = ""
) -> Plot:
    """Draws profiles [V, length] by axis of the image, a row for each value."""
    arrays = {name: np.asarray(p, float) for name, p in profiles.items()}
    limit = max(_choose_limit(array) for array in arrays.values())
    size, norm = (3.0 * len(arrays) + 1.6, 3.4), Normalize(-limit, limit)
    figure, grid = layout.make_panels((1, len(arrays)), size, pad=0.08)
    for axes, (name, array) in zip(grid[0], arrays.items(), strict=True):
        image = map_plots.show_cells(axes, array, norm, "RdBu_r")
        label = f"number along the {name}"
        axes.set(xlabel=label, ylabel=factor.label, title=name)
        map_plots.label_values(axes.yaxis, factor)
    figure.colorbar(image, ax=list(grid[0]), label="profile", aspect=25)
    table = partial(melt, arrays, ("axis", "level", "pixel"), "profile")
    return layout.finish_figure(figure, title, table)


def _choose_limit(matrices: np.ndarray) -> float:
    finite = np.abs(matrices[np.isfinite(matrices)])
    if not finite.any():
        return 1.0
    # Single entries beyond twice of it would bleach all the others.
    quantile = np.quantile(finite, 0.999)
    is_outlier = 0 < 2.0 * quantile < finite.max()
    return float(quantile if is_outlier else finite.max())
