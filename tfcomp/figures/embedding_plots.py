"""Embeddings of forced rendering: matrices in pixel space, one a value."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures import layout, map_plots
from tfcomp.figures.curve_plots import LINE_COLORS, MAX_MARKERS, finish_axes
from tfcomp.figures.exhibits import Plot, melt

MATRIX_SIZE = 0.8  # inches


def draw_embeddings(
    matrices: ArrayLike,
    levels: Sequence[str],
    *,
    factor_label: str,
    title: str = "",
) -> Plot:
    """Draws the matrices [V, rows, columns] of a factor on one color scale."""
    matrices = np.asarray(matrices, float)
    count, num_rows, num_columns = matrices.shape
    rows, columns = layout.arrange_panels(count, int(math.sqrt(2 * count)))

    panel_height = MATRIX_SIZE * min(2.0, max(0.5, num_rows / num_columns))
    title_height = 0.3 if title else 0.0
    width = max(4.0, columns * MATRIX_SIZE + 1.2)
    height = max(2.6, rows * (panel_height + 0.19) + 0.4 + title_height)
    bottom = 0.35 / height
    top = 1.0 - (0.25 + title_height) / height
    # Placed by hand: with 64 panels a layout engine takes seconds.
    figure = layout.make_figure((width, height))
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=0.1 / width,
        right=1.0 - 1.1 / width,
        bottom=bottom,
        top=top,
        wspace=0.05,
        hspace=0.19 / panel_height,
    )

    limit = _choose_limit(matrices)
    norm = Normalize(-limit, limit)
    panels = layout.keep_panels(grid, count)
    for axes, matrix, level in zip(panels, matrices, levels, strict=True):
        image = map_plots.show_cells(axes, matrix, norm, "RdBu_r")
        axes.set_title(level, fontsize=layout.scale_text(8), pad=2)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(linewidth=0.5, color="0.5")

    finite = matrices[np.isfinite(matrices)]
    is_cut = bool((np.abs(finite) > limit).any())
    place = (1.0 - 0.95 / width, bottom, 0.15 / width, top - bottom)
    figure.colorbar(
        image,
        cax=figure.add_axes(place),
        label="entry",
        extend="both" if is_cut else "neither",
    )
    # One line of text: a legend would lie on top of it.
    text = f"one matrix per value of {factor_label}"
    if finite.size < matrices.size:
        text += "; gray: no finite value"
    figure.supxlabel(text, fontsize=layout.scale_text(10))
    named = dict(zip(levels, matrices, strict=True))
    table = partial(melt, named, ("level", "row", "column"), "entry")
    return layout.finish_figure(figure, title, table)


def draw_spectrum(
    singular_values: ArrayLike, effective_rank: ArrayLike, *, title: str = ""
) -> Plot:
    """Draws singular values [V, R] relative to the largest of their matrix."""
    spectrum = np.sort(np.asarray(singular_values, float), axis=1)[:, ::-1]
    is_drawn = np.isfinite(spectrum).all(axis=1) & (spectrum[:, 0] > 0)
    relative = spectrum[is_drawn] / spectrum[is_drawn, :1]
    ranks = np.arange(1, spectrum.shape[1] + 1)

    figure = layout.make_figure((5.0, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set_yscale("log", nonpositive="clip")  # 0 is below, not a gap
    label = f"one of {len(relative)} values"
    for line in relative:
        axes.plot(ranks, line, color="0.6", lw=0.6, alpha=0.7, label=label)
    if len(relative):
        mean_rank = np.mean(np.asarray(effective_rank, float))
        axes.plot(
            ranks,
            np.median(relative, axis=0),
            "o-" if len(ranks) <= MAX_MARKERS else "-",
            color=LINE_COLORS[0],
            lw=2.4,
            ms=4,
            label=f"median (mean effective rank {mean_rank:.3g})",
        )
    axes.set(
        xlim=(0.5, len(ranks) + 0.5),
        ylim=(1e-4, 1.5),
        xlabel="index of the singular value",
        ylabel="singular value / largest",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
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
    size = (3.0 * len(arrays) + 1.6, 3.4)
    figure, grid = layout.make_panels((1, len(arrays)), size, pad=0.08)
    panels = list(grid[0])
    for axes, (name, array) in zip(panels, arrays.items(), strict=True):
        norm = Normalize(-limit, limit)
        image = map_plots.show_cells(axes, array, norm, "RdBu_r")
        xlabel = f"number along the {name}"
        axes.set(xlabel=xlabel, ylabel=factor.label, title=name)
        map_plots.label_values(axes.yaxis, factor)
    figure.colorbar(image, ax=panels, label="profile", aspect=25)
    table = partial(melt, arrays, ("axis", "level", "pixel"), "profile")
    return layout.finish_figure(figure, title, table)


def _choose_limit(matrices: np.ndarray) -> float:
    """Returns the end of a color scale that outliers do not wash out."""
    finite = np.abs(matrices[np.isfinite(matrices)])
    if not finite.any():
        return 1.0
    quantile = float(np.quantile(finite, 0.999))
    largest = float(finite.max())
    return quantile if 0 < 2.0 * quantile < largest else largest
