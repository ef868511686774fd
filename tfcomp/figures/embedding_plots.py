"""Embeddings: the matrix of every value, its spectrum, its profiles."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures import layout
from tfcomp.figures.cells import label_values, show_cells
from tfcomp.figures.line_style import LINE_COLORS, finish_axes

PANEL_SIZE = 0.8  # inches


def draw_embeddings(
    matrices: ArrayLike,
    values: Sequence[str] | Sequence[float] | np.ndarray,
    *,
    factor_label: str,
    title: str = "",
) -> Figure:
    """Draws the matrices of all values of one factor on one color scale.

    Blue is negative, white is 0 and red is positive. The scale reaches to the
    largest absolute entry; if that is more than twice the 99.9 % quantile of
    all, to this quantile, and the color bar says how much lies beyond.

    Args:
        matrices: The matrix of every value in pixel space, y upwards,
            `[V, rows, cols]`; not finite is shown in gray.
        values: The values or their names, which title the panels, `[V]`.
        factor_label: Name of the factor, with units.
    """
    matrices = np.asarray(matrices, float)
    limit = _choose_limit(matrices)
    count, num_rows, num_columns = matrices.shape
    # The fullest grid at most twice as wide as high, of those the squarest.
    most = int(math.sqrt(2.0 * count))
    sizes = range(math.ceil(math.sqrt(count)), most + 1)
    wide = min(sizes, key=lambda n: (-count % n, n))
    high = math.ceil(count / wide)
    panel = PANEL_SIZE * min(2.0, max(0.5, num_rows / num_columns))
    width = max(4.0, wide * PANEL_SIZE + 1.2)
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
    panels = layout.keep_panels(grid, count)
    for axes, matrix, value in zip(panels, matrices, values, strict=True):
        image = show_cells(axes, matrix, Normalize(-limit, limit), "RdBu_r")
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
    layout.finish_figure(figure, title)
    return figure


def draw_spectrum(
    singular_values: ArrayLike, effective_rank: ArrayLike, *, title: str = ""
) -> Figure:
    """Draws the singular values of all matrices, relative to their largest.

    Those of a matrix, `[V, R]`, are in any order; the legend has the mean of
    the effective ranks `[V]`, and counts matrices without values above 0.
    """
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
        look: dict[str, Any] = {
            "color": LINE_COLORS[0],
            "linewidth": 2.4,
            "markersize": 4,
        }
        look["marker"] = "o" if len(ranks) <= 16 else ""
        mean = np.mean(np.asarray(effective_rank, float))
        label = f"median (mean effective rank {mean:.3g})"
        axes.plot(ranks, np.median(relative, axis=0), label=label, **look)
    if not is_drawn.all():
        label = f"not drawn: {np.sum(~is_drawn)} without singular values"
        axes.plot([], [], linestyle="none", label=label)
    axes.set(xlim=(0.5, len(ranks) + 0.5), ylim=(1e-4, 1.5))
    axes.xaxis.set_major_locator(
        MaxNLocator(
            "auto", steps=[1, 2, 2.5, 5, 10], integer=True, min_n_ticks=1
        )
    )
    axes.set_xlabel("index of the singular value")
    axes.set_ylabel("singular value / largest")
    finish_axes(axes)
    layout.finish_figure(figure, title)
    return figure


def draw_profiles(
    profiles: Mapping[str, ArrayLike], *, factor: Factor, title: str = ""
) -> Figure:
    """Draws the profiles of all values along each axis of the image.

    `profiles` maps the name of an axis, as `rows`, to the profiles of all
    values of the factor, `[V, length]`, a row of cells each. All share one
    color scale with 0 in its middle, which shows the axis in use.
    """
    arrays = {name: np.asarray(p, float) for name, p in profiles.items()}
    limit = max(_choose_limit(array) for array in arrays.values())
    size = (3.0 * len(arrays) + 1.6, 3.4)
    figure, grid = layout.make_panels((1, len(arrays)), size, pad=0.08)
    for axes, (name, array) in zip(grid[0], arrays.items(), strict=True):
        image = show_cells(axes, array, Normalize(-limit, limit), "RdBu_r")
        label = f"number along the {name}"
        axes.set(xlabel=label, ylabel=factor.label, title=name)
        label_values(axes.yaxis, factor)
    figure.colorbar(image, ax=list(grid[0]), label="profile", aspect=25)
    layout.finish_figure(figure, title)
    return figure


def _choose_limit(matrices: np.ndarray) -> float:
    finite = np.abs(matrices[np.isfinite(matrices)])
    if not finite.any():
        return 1.0
    # Single entries beyond twice of it would bleach all the others.
    quantile = np.quantile(finite, 0.999)
    is_outlier = 0 < 2.0 * quantile < finite.max()
    return float(quantile if is_outlier else finite.max())
