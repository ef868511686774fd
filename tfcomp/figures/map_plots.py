"""Maps over the grid of two factors, similarity matrices, tables of scores."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.datasets.grid_maps import GridMap, Plane
from tfcomp.figures import layout, looks
from tfcomp.figures.exhibits import Plot, melt
from tfcomp.figures.looks import LINE_COLORS, finish_axes

MAX_COLUMNS = 4
ROW_HEIGHT = 1.75  # inches, of a unit
GRAM_SIZE = 2.5  # inches, of a similarity matrix


def draw_maps(
    maps: Mapping[str, GridMap],
    *,
    label: str,
    title: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,  # of rcParams
) -> Plot:
    """Draws maps of two factors on one color scale; not finite is gray."""
    arrays = [np.ravel(found.values) for found in maps.values()]
    numbers = np.concatenate(arrays, dtype=float)
    finite = numbers[np.isfinite(numbers)]
    ends = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    norm = Normalize(*(limits or ends))
    is_shared = len({found.factors for found in maps.values()}) == 1
    panel_size = {1: 4.0, 2: 3.0}.get(len(maps), 2.3)  # inches
    aspects = [looks.get_map_aspect(m.values.shape) for m in maps.values()]
    num_rows, num_columns = layout.arrange_panels(len(maps), MAX_COLUMNS)
    # The additions make room for color bar, axis names and titles.
    height = panel_size + (0.4 if is_shared else 1.0)
    width = panel_size * max(aspects)
    size = num_columns * width + 1.6, num_rows * height + 0.8
    figure, grid = layout.make_panels((num_rows, num_columns), size, pad=0.08)
    panels = layout.keep_panels(grid, len(maps))
    for index, (axes, name) in enumerate(zip(panels, maps, strict=True)):
        image = looks.show_map(axes, maps[name], norm, cmap=cmap)
        layout.add_panel_title(axes, name, panel_size * aspects[index])
        # Where all panels have the same axes, only the outer ones are named.
        is_lowest = not is_shared or index + num_columns >= len(panels)
        is_first = not is_shared or index % num_columns == 0
        x, y = maps[name].factors
        axes.set_xlabel(x.label if is_lowest else "")
        axes.set_ylabel(y.label if is_first else "")
        axes.tick_params(labelbottom=is_lowest, labelleft=is_first)
    figure.colorbar(image, ax=panels, label=label, aspect=25, pad=0.02)
    gray = None if finite.size == numbers.size else looks.NO_VALUE_COLOR
    table = partial(tabulate_maps, maps)
    return layout.finish_figure(figure, title, table, gray)


def tabulate_maps(maps: Mapping[str, GridMap]) -> pd.DataFrame:
    """Returns a row for each cell: values of the factors, number, held out."""
    tables = []
    for name, drawn in maps.items():
        values = [factor.values() for factor in drawn.factors]
        names = [factor.name for factor in drawn.factors]
        points = pd.MultiIndex.from_product(values, names=names)
        table = points.to_frame(index=False)
        table.insert(0, "map", name)
        table["value"] = drawn.values.ravel()
        if drawn.mask is not None:
            table["held_out"] = drawn.mask.ravel()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def draw_tuning(
    units: Mapping[str, GridMap], plane: Plane, *, title: str = ""
) -> Plot:
    """Draws a row per unit: its map, and its mean as a function of a factor."""
    factors = next(iter(units.values())).factors
    nx, ny = (factor.size for factor in plane.factors)
    width = ROW_HEIGHT * looks.get_map_aspect((nx, ny))
    ratios = (width + 0.6, *[2.0] * len(factors))
    size = sum(ratios) + 1.6, len(units) * (ROW_HEIGHT + 0.3) + 0.7
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    figure = layout.make_figure(size, layout=engine)
    shape: dict[str, Any] = {"width_ratios": ratios, "squeeze": False}
    panels = figure.subplots(len(units), len(ratios), **shape)
    for row, (name, unit) in zip(panels, units.items(), strict=True):
        image = looks.show_map(row[0], unit.cut(plane), linewidth=1.2)
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
    table = partial(tabulate_maps, units)
    return layout.finish_figure(
        figure, title, table, None if is_finite else looks.NO_VALUE_COLOR
    )


def _draw_marginals(panels: Sequence[Axes], unit: GridMap) -> None:
    for axis, axes in enumerate(panels):
        marginal = unit.average(axis)
        (factor,), values = marginal.factors, marginal.values
        style = "o" if factor.categorical else "-"  # names have no order
        axes.plot(np.arange(len(values)), values, style, color=LINE_COLORS[0])
        axes.set_xlim(-0.5, len(values) - 0.5)
        if marginal.mask is not None and not marginal.mask.all():
            for _, low, high in looks.find_runs(marginal.mask[np.newaxis]):
                looks.shade_interval(axes, low, high)
        finish_axes(axes)
        looks.label_values(axes.xaxis, factor)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[1:]:
        axes.sharey(panels[0])
        axes.tick_params(labelleft=False)
    panels[0].autoscale(axis="y")


def draw_gram_matrices(
    matrices: Mapping[str, ArrayLike],
    num_id: int,
    *,
    title: str = "",
    names: Sequence[str] = (),
) -> Plot:
    """Draws Gram matrices [n, n] from 0 (dark) to 1, ID points first."""
    arrays = {name: np.asarray(m, float) for name, m in matrices.items()}
    count = len(next(iter(arrays.values())))
    groups = {"ID": num_id / 2, "OOD": (num_id + count) / 2}
    groups = groups if num_id < count else {}
    ticks = {name: place for place, name in enumerate(names)} or groups
    size = GRAM_SIZE * len(arrays) + 1.0, GRAM_SIZE + 0.9
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(1, len(arrays), squeeze=False)[0]
    for axes, (name, array) in zip(grid, arrays.items(), strict=True):
        image = axes.imshow(array, vmin=0.0, vmax=1.0, interpolation="auto")
        if groups:
            for draw_border in (axes.axhline, axes.axvline):
                draw_border(num_id - 0.5, color=looks.OUTLINE_COLOR, lw=1.0)
        turn = 90 if names else 0
        axes.set_xticks(list(ticks.values()), list(ticks), rotation=turn)
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.tick_params(length=0)
        layout.add_panel_title(axes, name, GRAM_SIZE)
    figure.colorbar(image, ax=list(grid), label="similarity", pad=0.02)
    columns = ("matrix", "row", "column")
    table = partial(melt, arrays, columns, "similarity")
    return layout.finish_figure(figure, title, table)


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
    size = 1.15 * len(columns) + 3.0, 0.34 * len(rows) + 1.6
    figure = layout.make_figure(size, layout="constrained")
    axes = figure.subplots()
    table = np.array(
        [[values.get((row, c), np.nan) for c in columns] for row in rows]
    )
    picture = axes.imshow(
        np.clip(table, 0.0, 1.0),
        colormaps["RdYlBu"].with_extremes(bad=looks.NO_VALUE_COLOR),
        Normalize(0, 1),
        aspect="auto",
    )
    look: dict[str, Any] = {"ha": "center", "va": "center"}
    look["fontsize"] = small = layout.scale_text(8)
    for y, x in np.ndindex(table.shape):
        place = rows[y], columns[x]
        if place not in values:
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, color="white")
            axes.add_patch(cell)
            continue
        is_dark = table[y, x] < 0.28 or table[y, x] > 0.86
        color = "white" if is_dark else "black"
        axes.text(x, y, texts.get(place, ""), color=color, **look)
    words = [column.split() for column in columns]
    names = [
        "\n".join(w if len(w) <= 16 else w.replace(":", ":\n", 1) for w in text)
        for text in words
    ]
    axes.set_xticks(range(len(columns)), names)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, labelsize=small)
    axes.xaxis.tick_top()
    figure.colorbar(picture, ax=axes, label=label, shrink=0.8)
    cells = dict(zip(rows, table, strict=True))
    data = partial(melt, cells, ("row", "column"), "value")
    return layout.finish_figure(figure, title, data)
