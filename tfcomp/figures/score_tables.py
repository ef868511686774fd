"""A table of scores as colors: one glance, many cases."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tfcomp.figures.cells import NO_VALUE_COLOR
from tfcomp.figures.layout import finish_figure

COLORS = "RdYlBu"
_CELL = (1.15, 0.34)  # inches
_WIDE = 16  # letters in the width of a cell
_DARK = 0.28  # closer than this to an end of the scale text is white


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
        title: Of the figure.
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
