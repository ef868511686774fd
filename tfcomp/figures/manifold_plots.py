"""Manifolds of stages in two dimensions, and embeddings in pixel space."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures import layout, looks
from tfcomp.figures.exhibits import Plot, melt
from tfcomp.figures.looks import LINE_COLORS, finish_axes

PANEL_SIZE = 2.3  # inches, of a manifold
MATRIX_SIZE = 0.8  # inches
MAX_COLUMNS = 6
# The ends of the cyclic colors are nearly white.
_EDGES: dict[str, Any] = {"linewidths": 0.25, "edgecolors": "0.3"}


def draw_manifolds(
    embeddings: Mapping[str, ArrayLike],
    factors: ArrayLike,
    is_ood: ArrayLike,
    *,
    space: Sequence[Factor],
    title: str = "",
) -> Plot:
    """Draws points [n, 2] of stages: a curve, or a block for each factor."""
    places = {name: np.asarray(e, float) for name, e in embeddings.items()}
    factors, is_ood = np.asarray(factors, float), np.asarray(is_ood, bool)
    rows, columns = layout.arrange_panels(len(places), MAX_COLUMNS)
    shape = rows * len(space), columns
    # The additions make room for color bars and titles.
    size = columns * PANEL_SIZE + 1.2, shape[0] * (PANEL_SIZE + 0.1) + 0.8
    figure, grid = layout.make_panels(shape, size, pad=0.04)
    for axes in grid.ravel():
        axes.set(xticks=[], yticks=[])
        axes.set_box_aspect(1)
    is_curve = len(space) == 1 and not space[0].categorical
    for i, factor in enumerate(space):
        block = grid[i * rows : (i + 1) * rows]
        panels = layout.keep_panels(block, len(places))
        colors = _make_colors(factors[:, i], factor.periodic)
        shades = colors.to_rgba(factors[:, i])
        for axes, (stage, points) in zip(panels, places.items(), strict=True):
            if is_curve:
                _draw_curve(axes, points, shades, is_ood, factor.periodic)
            else:
                _draw_points(axes, points, shades, is_ood)
            if not np.isfinite(points).any():
                axes.set_xlabel("no variance")
            if i == 0:
                layout.add_panel_title(axes, stage, PANEL_SIZE)
        bar = figure.colorbar(colors, ax=panels, label=factor.label, pad=0.01)
        if factor.names:
            bar.set_ticks(factor.values().tolist(), labels=factor.names)
    names = ("stage", "point", "axis")
    table = partial(melt, places, names, "coordinate")
    return layout.finish_figure(figure, title, table)


def _make_colors(values: np.ndarray, periodic: bool) -> ScalarMappable:
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
    if periodic and finite.size > 1:
        # The value after the last one is the first one again.
        high += (high - low) / (len(np.unique(finite)) - 1)
    cmap = "twilight" if periodic else "viridis"
    return ScalarMappable(Normalize(low, high), cmap)


def _draw_points(
    axes: Axes, points: np.ndarray, shades: np.ndarray, is_ood: np.ndarray
) -> None:
    for label, rows, marker, size in (
        ("training region", ~is_ood, "o", 6),
        (looks.OUTLINE_LABEL, is_ood, "D", 18),
    ):
        look: dict[str, Any] = {"marker": marker, "s": size, **_EDGES}
        if rows.any():
            x, y = points[rows].T
            axes.scatter(x, y, c=shades[rows], **look)
            # The legend has a color that stands for no value.
            axes.scatter([], [], facecolor="0.6", label=label, **look)


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
        look: dict[str, Any] = dict(lw=7, alpha=0.35, capstyle="round")
        look |= dict(color=looks.OUTLINE_COLOR, label=looks.OUTLINE_LABEL)
        axes.add_collection(LineCollection(list(steps[touches]), **look))
    axes.add_collection(LineCollection(list(steps), color="0.45", lw=0.8))
    x, y = points.T
    axes.scatter(x, y, c=shades, s=10, zorder=3, **_EDGES)


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
        image = looks.show_cells(axes, matrix, norm, "RdBu_r")
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
    numbered = dict(enumerate(relative))
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
        image = looks.show_cells(axes, array, norm, "RdBu_r")
        label = f"number along the {name}"
        axes.set(xlabel=label, ylabel=factor.label, title=name)
        looks.label_values(axes.yaxis, factor)
    figure.colorbar(image, ax=list(grid[0]), label="profile", aspect=25)
    columns = ("axis", "level", "pixel")
    table = partial(melt, arrays, columns, "profile")
    return layout.finish_figure(figure, title, table)


def _choose_limit(matrices: np.ndarray) -> float:
    finite = np.abs(matrices[np.isfinite(matrices)])
    if not finite.any():
        return 1.0
    # Single entries beyond twice of it would bleach all the others.
    quantile = np.quantile(finite, 0.999)
    is_outlier = 0 < 2.0 * quantile < finite.max()
    return float(quantile if is_outlier else finite.max())
