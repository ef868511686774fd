"""Panels of images, and of points: samples of models, manifolds of stages."""

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgb
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures import layout
from tfcomp.figures.curve_plots import OUTLINE_COLOR, OUTLINE_LABEL
from tfcomp.figures.exhibits import Plot, arrange_channels, melt
from tfcomp.figures.map_plots import draw_outline, show_cells

PANEL_SIZE = 1.5  # inches, of an image
TITLE_LETTERS = 16  # of a line above a panel
TITLE_PAD = 9  # points; circles reach beyond panels
# No shade of the gray scale, so that a model that diverged is not taken for
# one that draws gray.
NO_VALUE_COLOR = "#b9a3e3"
MANIFOLD_SIZE = 2.3  # inches
MAX_COLUMNS = 6
# The ends of the cyclic colors are nearly white.
_EDGES: dict[str, Any] = {"linewidths": 0.25, "edgecolors": "0.3"}


def draw_rows(
    rows: Mapping[str, ArrayLike],
    positions: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    title: str = "",
    first_row: str = "bottom",
    column_titles: Sequence[str] | None = None,
) -> Plot:
    """Draws rows of images [n, H, W, ...], with positions [n, 2] circled."""
    stacks = {label: arrange_channels(images) for label, images in rows.items()}
    first = next(iter(stacks.values()))
    shape = len(stacks), len(first)
    # Titles of neighboring columns would run into each other.
    titles = [
        "\n".join(textwrap.fill(line, TITLE_LETTERS) for line in t.split("\n"))
        for t in column_titles or ()
    ]
    num_lines = max((t.count("\n") for t in titles), default=0)
    # Wide enough for the legend, high enough for the titles.
    width = max(4.5, PANEL_SIZE * shape[1] + 0.4)
    height = _get_height(first.shape) * shape[0] + 0.6 + 0.16 * num_lines
    figure, panels = layout.make_panels(shape, (width, height), pad=0.06)
    for panel_row, (label, images) in zip(panels, stacks.items(), strict=True):
        for axes, image in zip(panel_row, images, strict=True):
            _draw_image(axes, image, mask)
            if first_row == "top":
                axes.invert_yaxis()
        for axes in panel_row[1:]:
            axes.yaxis.set_visible(False)
        # A label has lines as long as its panels are high.
        letters = max(4, int(_get_height(images.shape) * 8))
        text = textwrap.fill(label, letters, break_long_words=False)
        panel_row[0].set_ylabel(text, fontsize=layout.scale_text(12))
    if positions is not None:
        for both in zip(panels.T, np.asarray(positions), strict=True):
            _mark_position(*both)
    for axes, text in zip(panels[0], titles, strict=False):
        axes.set_title(text, fontsize=layout.scale_text(10), pad=TITLE_PAD)
    is_finite = all(np.isfinite(images).all() for images in stacks.values())
    names = ("row", "image", "y", "x", "channel")
    table = partial(melt, stacks, names, "pixel")
    return layout.finish_figure(
        figure, title, table, None if is_finite else NO_VALUE_COLOR
    )


def _draw_image(axes: Axes, image: np.ndarray, mask: ArrayLike | None) -> None:
    if image.ndim == 3:
        is_finite = np.isfinite(image).all(axis=-1, keepdims=True)
        image = np.where(is_finite, image, to_rgb(NO_VALUE_COLOR))
        axes.imshow(image.clip(0, 1), origin="lower", interpolation="nearest")
    else:
        show_cells(axes, image, Normalize(0, 1), "gray", NO_VALUE_COLOR)
    axes.set(xticks=[], yticks=[])
    axes.xaxis.set_visible(False)  # or its place is looked for at length
    if mask is not None:
        draw_outline(axes, mask, linewidth=1.2)


def _get_height(shape: tuple[int, ...]) -> float:
    return PANEL_SIZE * min(1.0, shape[1] / shape[2])


def _mark_position(column: Sequence[Axes], position: ArrayLike) -> None:
    x, y = np.asarray(position, float)
    texts = ["\N{EN DASH}" if np.isnan(c) else f"{c:.3g}" for c in (x, y)]
    title, size = f"({', '.join(texts)})", layout.scale_text(10)
    column[0].set_title(title, fontsize=size, pad=TITLE_PAD)
    if np.isnan([x, y]).any():  # a stripe is no point
        return
    # Wide enough to leave the peak in sight, and whole at the border.
    look: dict[str, Any] = dict(clip_on=False, in_layout=False, zorder=4)
    look |= dict(color="#ff7f0e", fillstyle="none", label="true position")
    for axes in column:
        axes.plot(x, y, "o", markersize=layout.scale_text(16), **look)


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
    size = columns * MANIFOLD_SIZE + 1.2, shape[0] * (MANIFOLD_SIZE + 0.1) + 0.8
    figure, grid = layout.make_panels(shape, size, pad=0.04)
    for axes in grid.ravel():
        axes.set(xticks=[], yticks=[])
        axes.set_box_aspect(1)
    is_curve = len(space) == 1 and not space[0].categorical
    for i, factor in enumerate(space):
        block = grid[i * rows : (i + 1) * rows]
        panels = layout.keep_panels(block, len(places))
        colors = _make_colors(factors[:, i], factor)
        shades = colors.to_rgba(factors[:, i])
        for axes, (stage, points) in zip(panels, places.items(), strict=True):
            if is_curve:
                _draw_curve(axes, points, shades, is_ood, factor.is_closed)
            else:
                _draw_points(axes, points, shades, is_ood)
            if not np.isfinite(points).any():
                axes.set_xlabel("no variance")
            if i == 0:
                layout.add_panel_title(axes, stage, MANIFOLD_SIZE)
        bar = figure.colorbar(colors, ax=panels, label=factor.label, pad=0.01)
        if factor.names:
            bar.set_ticks(factor.values().tolist(), labels=factor.names)
    names = ("stage", "point", "axis")
    table = partial(melt, places, names, "coordinate")
    return layout.finish_figure(figure, title, table)


def _make_colors(values: np.ndarray, factor: Factor) -> ScalarMappable:
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
    cmap = "viridis"
    if factor.periodic:
        low, high = factor.low, factor.high
        cmap = "twilight"
    return ScalarMappable(Normalize(low, high), cmap)


def _draw_points(
    axes: Axes, points: np.ndarray, shades: np.ndarray, is_ood: np.ndarray
) -> None:
    for label, rows, marker, size in (
        ("training region", ~is_ood, "o", 6),
        (OUTLINE_LABEL, is_ood, "D", 18),
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
    is_closed: bool,
) -> None:
    after = np.roll(points, -1, axis=0)
    steps = np.stack([points, after], axis=1)  # [n, 2 ends, 2]
    touches = is_ood | np.roll(is_ood, -1)
    if not is_closed:
        steps, touches = steps[:-1], touches[:-1]
    if touches.any():
        look: dict[str, Any] = dict(lw=7, alpha=0.35, capstyle="round")
        look |= dict(color=OUTLINE_COLOR, label=OUTLINE_LABEL)
        axes.add_collection(LineCollection(list(steps[touches]), **look))
    axes.add_collection(LineCollection(list(steps), color="0.45", lw=0.8))
    x, y = points.T
    axes.scatter(x, y, c=shades, s=10, zorder=3, **_EDGES)
