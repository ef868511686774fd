"""A picture of scores: a colored cell for each decoder and split."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from tfcomp.figures import exhibits
from tfcomp.figures.exhibits import Plot, melt
from tfcomp.figures.map_plots import NO_VALUE_COLOR

MAX_LETTERS = 16  # of a word above a column


def draw_score_table(
    values: Mapping[tuple[str, str], float],
    texts: Mapping[tuple[str, str], str],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    title: str,
) -> Plot:
    """Draws a cell for each row and column, from 0 to 1, gray if NaN."""
    table = np.full((len(rows), len(columns)), np.nan)
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            table[y, x] = values.get((row, column), np.nan)

    size = (1.15 * len(columns) + 3.0, 0.34 * len(rows) + 1.6)
    figure = exhibits.make_figure(size, layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(
        np.clip(table, 0.0, 1.0),
        colormaps["RdYlBu"].with_extremes(bad=NO_VALUE_COLOR),
        Normalize(0, 1),
        aspect="auto",
    )
    small = exhibits.scale_text(8)
    for y, x in np.ndindex(table.shape):
        place = (rows[y], columns[x])
        if place not in values:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color="white"))
            continue
        is_dark = table[y, x] < 0.28 or table[y, x] > 0.86
        axes.text(
            x,
            y,
            texts.get(place, ""),
            color="white" if is_dark else "black",
            fontsize=small,
            ha="center",
            va="center",
        )

    axes.set_xticks(range(len(columns)), map(_break_lines, columns))
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, labelsize=small)
    axes.xaxis.tick_top()
    figure.colorbar(picture, ax=axes, label=label, shrink=0.8)
    cells = dict(zip(rows, table, strict=True))
    data = partial(melt, cells, ("row", "column"), "value")
    return exhibits.finish_figure(figure, title, data)


def _break_lines(column: str) -> str:
    """Writes a word a line, and breaks long ones after their colon."""
    lines = []
    for word in column.split():
        if len(word) > MAX_LETTERS:
            word = word.replace(":", ":\n", 1)
        lines.append(word)
    return "\n".join(lines)
