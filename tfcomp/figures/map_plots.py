"""Maps over the grid of two factors, similarity matrices, tables of scores."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.cells import (
    NO_VALUE_COLOR,
    OUTLINE_COLOR,
    get_map_aspect,
    show_map,
)
from tfcomp.figures.layout import (
    add_panel_title,
    arrange_panels,
    finish_figure,
    keep_panels,
    make_panels,
)

MAX_COLUMNS = 4
# Height of a row of maps in inches, and where there are only one or two.
PANEL_SIZE = 2.3
PANEL_SIZES = {1: 4.0, 2: 3.0}
GRAM_SIZE = 2.5  # of a similarity matrix
COLORS = "RdYlBu"  # of a table of scores
_CELL = (1.15, 0.34)  # inches
_WIDE = 16  # letters in the width of a cell
_DARK = 0.28  # closer than this to an end of the scale text is white


def draw_maps(
    maps: Mapping[str, GridMap],
    *,
    label: str,
    title: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str = "viridis",
) -> Figure:
    """Draws maps over the factor grid, x to the right and y upwards.

    All share one color scale, so that they compare; it reaches by default from
    the smallest to the largest of all values. The label says what it means,
    with units. What is not finite is gray, and the region of held-out points
    is outlined. Signed numbers want limits on both sides of 0, and colors that
    diverge from it, as `RdBu_r`.
    """
    arrays = [np.asarray(found.values, float) for found in maps.values()]
    numbers = np.concatenate([array.ravel() for array in arrays])
    finite = numbers[np.isfinite(numbers)]
    ends = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    norm = Normalize(*(limits or ends))
    factors = [found.factors for found in maps.values()]
    is_shared = len(set(factors)) == 1
    panel_size = PANEL_SIZES.get(len(arrays), PANEL_SIZE)
    width = panel_size * max(get_map_aspect(array.shape) for array in arrays)
    num_rows, num_columns = arrange_panels(len(arrays), MAX_COLUMNS)
    # The additions make room for color bar, axis names and titles.
    space = 0.4 if is_shared else 1.0
    size = num_columns * width + 1.6, num_rows * (panel_size + space) + 0.8
    figure, grid = make_panels((num_rows, num_columns), size, pad=0.08)
    panels = keep_panels(grid, len(arrays))
    for axes, (name, found) in zip(panels, maps.items(), strict=True):
        image = show_map(axes, found, norm, cmap=cmap)
        # A narrow map among wide ones has a narrow title.
        own = panel_size * get_map_aspect(found.values.shape)
        add_panel_title(axes, name, own)
    _name_axes(panels, num_columns, factors, is_shared)
    figure.colorbar(image, ax=panels, label=label, aspect=25, pad=0.02)
    is_finite = finite.size == numbers.size
    finish_figure(figure, title, None if is_finite else NO_VALUE_COLOR)
    return figure


def _name_axes(
    panels: Sequence[Axes],
    columns: int,
    factors: Sequence[tuple[Factor, ...]],
    is_shared: bool,
) -> None:
    """Labels the axes, the outer ones only where all panels have the same."""
    for index, (axes, (x, y)) in enumerate(zip(panels, factors, strict=True)):
        is_lowest = not is_shared or index + columns >= len(panels)
        is_first = not is_shared or index % columns == 0
        axes.set_xlabel(x.label if is_lowest else "")
        axes.set_ylabel(y.label if is_first else "")
        axes.tick_params(labelbottom=is_lowest, labelleft=is_first)


def draw_gram_matrices(
    matrices: Mapping[str, ArrayLike],
    num_id: int,
    *,
    title: str = "",
    names: Sequence[str] = (),
) -> Figure:
    """Draws Gram matrices side by side, each from 0 (dark) to 1.

    All are of one size [n, n], with ID points before OOD points, between which
    lines are drawn. The first point is at the upper left. Few enough to be
    named have names instead, in place of ID and OOD.
    """
    arrays = {name: np.asarray(m, float) for name, m in matrices.items()}
    size = len(next(iter(arrays.values())))
    groups = {"ID": num_id / 2, "OOD": (num_id + size) / 2}
    groups = groups if num_id < size else {}
    ticks = {name: place for place, name in enumerate(names)} or groups
    figure = Figure(
        figsize=(GRAM_SIZE * len(arrays) + 1.0, GRAM_SIZE + 0.9),
        layout="constrained",
    )
    grid = figure.subplots(1, len(arrays), squeeze=False)[0]
    for axes, (name, array) in zip(grid, arrays.items(), strict=True):
        image = axes.imshow(array, vmin=0.0, vmax=1.0, interpolation="auto")
        if groups:
            axes.axhline(num_id - 0.5, color=OUTLINE_COLOR, linewidth=1.0)
            axes.axvline(num_id - 0.5, color=OUTLINE_COLOR, linewidth=1.0)
        turn = 90 if names else 0
        axes.set_xticks(list(ticks.values()), list(ticks), rotation=turn)
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.tick_params(length=0)
        add_panel_title(axes, name, GRAM_SIZE)
    figure.colorbar(image, ax=list(grid), label="similarity", pad=0.02)
    finish_figure(figure, title)
    return figure


def draw_score_table(
    values: Mapping[tuple[str, str], float],
    texts: Mapping[tuple[str, str], str],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    title: str,
) -> Figure:
    """Draws a cell for each row and column, colored from 0 to 1.

    Args:
        values: By row and column; gray where one is NaN, white where there
            is none.
        texts: What is written into cells.
        rows: From the top down.
        columns: From left to right; a space starts a new line, and so does
            the first colon of a word that is wider than its cell.
        label: What the color means.
    """
    size = _CELL[0] * len(columns) + 3.0, _CELL[1] * len(rows) + 1.6
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    table = np.array(
        [[values.get((row, c), np.nan) for c in columns] for row in rows]
    )
    colors = colormaps[COLORS].with_extremes(bad=NO_VALUE_COLOR)
    picture = axes.imshow(
        np.clip(table, 0.0, 1.0),
        cmap=colors,
        norm=Normalize(0, 1),
        aspect="auto",
    )
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            if (row, column) not in values:
                cell = Rectangle((x - 0.5, y - 0.5), 1, 1, color="white")
                axes.add_patch(cell)
                continue
            value = table[y, x]
            is_dark = value < _DARK or value > 1 - _DARK / 2
            axes.text(
                x,
                y,
                texts.get((row, column), ""),
                ha="center",
                va="center",
                fontsize=8,
                color="white" if is_dark else "black",
            )
    names = ["\n".join(map(_break, column.split())) for column in columns]
    axes.set_xticks(range(len(columns)), names)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, labelsize=8)
    axes.xaxis.tick_top()
    figure.colorbar(picture, ax=axes, label=label, shrink=0.8)
    finish_figure(figure, title)
    return figure


def _break(word: str) -> str:
    return word if len(word) <= _WIDE else word.replace(":", ":\n", 1)
