"""Maps of two factors, similarity matrices, and outlines of regions."""

from collections.abc import Mapping, Sequence
from functools import partial

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures import layout
from tfcomp.figures.curve_plots import OUTLINE_COLOR, OUTLINE_LABEL, SLANTED
from tfcomp.figures.exhibits import Plot, melt

NO_VALUE_COLOR = "0.65"
MAX_COLUMNS = 4
MAX_TICKS = 6
MAX_NAMES = 10  # names along an axis
MAX_LETTERS = 26  # of all labels that lie side by side
GRAM_SIZE = 2.5  # inches, of a similarity matrix
# Multiples of powers of ten that are round parts of a circle, and of numbers.
_DEGREES = (1, 1.5, 3, 4.5, 6, 9, 10)
_DECIMALS = (1, 2, 2.5, 5, 10)
# Ends ((x0, y0), (x1, y1)) of a line.
Segment = tuple[tuple[float, float], tuple[float, float]]


def draw_maps(
    maps: Mapping[str, GridMap],
    *,
    label: str,
    title: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,  # of rcParams
) -> Plot:
    """Draws maps of two factors on one color scale; not finite is gray."""
    numbers = np.concatenate([np.ravel(m.values) for m in maps.values()])
    finite = numbers[np.isfinite(numbers)]
    if limits is None and finite.size:
        limits = (finite.min(), finite.max())
    norm = Normalize(*(limits or (0.0, 1.0)))

    is_shared = len({drawn.factors for drawn in maps.values()}) == 1
    panel_size = {1: 4.0, 2: 3.0}.get(len(maps), 2.3)  # inches
    widths = [
        panel_size * get_map_aspect(drawn.values.shape)
        for drawn in maps.values()
    ]
    num_rows, num_columns = layout.arrange_panels(len(maps), MAX_COLUMNS)
    # The additions make room for color bar, axis names and titles.
    height = panel_size + (0.4 if is_shared else 1.0)
    figure, grid = layout.make_panels(
        (num_rows, num_columns),
        (num_columns * max(widths) + 1.6, num_rows * height + 0.8),
        pad=0.08,
    )

    panels = layout.keep_panels(grid, len(maps))
    for index, (axes, name) in enumerate(zip(panels, maps, strict=True)):
        image = show_map(axes, maps[name], norm, cmap=cmap)
        layout.add_panel_title(axes, name, widths[index])
        x, y = maps[name].factors
        axes.set(xlabel=x.label, ylabel=y.label)
        # Where all panels have the same axes, only the outer ones are named.
        if is_shared and index + num_columns < len(panels):
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
        if is_shared and index % num_columns > 0:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)

    figure.colorbar(image, ax=panels, label=label, aspect=25, pad=0.02)
    gray = None if finite.size == numbers.size else NO_VALUE_COLOR
    return layout.finish_figure(
        figure, title, partial(tabulate_maps, maps), gray
    )


def tabulate_maps(maps: Mapping[str, GridMap]) -> pd.DataFrame:
    """Returns a row for each cell: values of the factors, number, held out."""
    tables = []
    for name, drawn in maps.items():
        names = [factor.name for factor in drawn.factors]
        values = [factor.values() for factor in drawn.factors]
        points = pd.MultiIndex.from_product(values, names=names)
        table = points.to_frame(index=False)
        table.insert(0, "map", name)
        # Hue, saturation and value may be the factors.
        column = "number" if "value" in names else "value"
        table[column] = drawn.values.ravel()
        if drawn.mask is not None:
            table["held_out"] = drawn.mask.ravel()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def draw_gram_matrices(
    matrices: Mapping[str, ArrayLike],
    num_id: int,
    *,
    title: str = "",
    names: Sequence[str] = (),
) -> Plot:
    """Draws similarity matrices on a scale from 0 (dark) to 1.

    Args:
        matrices: Arrays [n, n] by the titles of their panels.
        num_id: The number of ID points, which come first.
        title: The title of the figure.
        names: Names of the n rows; without them, ID and OOD are named.
    """
    arrays = {name: np.asarray(m, float) for name, m in matrices.items()}
    count = len(next(iter(arrays.values())))
    ticks: dict[str, float] = {name: row for row, name in enumerate(names)}
    if num_id < count:
        ticks = {"ID": num_id / 2, "OOD": (num_id + count) / 2}

    size = (GRAM_SIZE * len(arrays) + 1.0, GRAM_SIZE + 0.9)
    figure = layout.make_figure(size, layout="constrained")
    panels = figure.subplots(1, len(arrays), squeeze=False)[0]
    for axes, (name, array) in zip(panels, arrays.items(), strict=True):
        image = axes.imshow(array, vmin=0.0, vmax=1.0, interpolation="auto")
        if num_id < count:
            axes.axhline(num_id - 0.5, color=OUTLINE_COLOR, lw=1.0)
            axes.axvline(num_id - 0.5, color=OUTLINE_COLOR, lw=1.0)
        turn = 90 if names else 0
        axes.set_xticks(list(ticks.values()), list(ticks), rotation=turn)
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.tick_params(length=0)
        layout.add_panel_title(axes, name, GRAM_SIZE)

    figure.colorbar(image, ax=list(panels), label="similarity", pad=0.02)
    table = partial(melt, arrays, ("matrix", "row", "column"), "similarity")
    return layout.finish_figure(figure, title, table)


def show_map(
    axes: Axes,
    drawn: GridMap,
    norm: Normalize | None = None,
    linewidth: float = 1.8,
    cmap: str | None = None,
) -> AxesImage:
    """Shows a map of two factors, with their values at its axes."""
    num_x, num_y = drawn.values.shape
    aspect = num_x / num_y / get_map_aspect((num_x, num_y))
    image = show_cells(axes, drawn.values.T, norm, cmap, aspect=aspect)
    x, y = drawn.factors
    label_values(axes.xaxis, x)
    label_values(axes.yaxis, y)
    if drawn.mask is not None:
        draw_outline(axes, drawn.mask, linewidth)
    if y.name in drawn.downward:
        axes.invert_yaxis()
    return image


def get_map_aspect(shape: tuple[int, int]) -> float:
    """Returns width over height of a map of `(nx, ny)` cells."""
    return min(2.5, max(0.7, shape[0] / shape[1]))


def show_cells(
    axes: Axes,
    values: np.ndarray,
    norm: Normalize | None = None,
    cmap: str | None = None,  # of rcParams
    no_value_color: str = NO_VALUE_COLOR,
    aspect: float = 1.0,
) -> AxesImage:
    """Shows cells, counted from 0; `aspect` is their height over width."""
    colors = matplotlib.colormaps[cmap or matplotlib.rcParams["image.cmap"]]
    return axes.imshow(
        np.ma.masked_invalid(values),
        origin="lower",
        cmap=colors.with_extremes(bad=no_value_color),
        norm=norm,
        aspect=aspect,
        interpolation="nearest",
    )


def label_values(axis: Axis, factor: Factor) -> None:
    """Labels an axis, on which cells count from 0, with values or names."""
    values = factor.values()
    is_listed = factor.names or factor.levels or factor.categorical
    if is_listed or len(values) <= MAX_TICKS:
        max_ticks = MAX_NAMES if factor.names else MAX_TICKS
        step = -(-len(values) // max_ticks)
        places = np.arange(0.0, len(values), step)
        labels = [factor.describe(value) for value in values[::step]]
    else:
        steps = _DEGREES if factor.unit == "degrees" else _DECIMALS
        is_whole = np.array_equal(values, np.round(values))
        locator = MaxNLocator(MAX_TICKS - 1, steps=steps, integer=is_whole)
        numbers = np.asarray(locator.tick_values(values[0], values[-1]))
        places = (numbers - factor.low) / factor.step
        is_inside = (places > -0.5) & (places < len(values) - 0.5)
        places = places[is_inside]
        labels = [f"{number:g}" for number in numbers[is_inside].round(9)]

    is_crowded = isinstance(axis, XAxis) and sum(map(len, labels)) > MAX_LETTERS
    axis.set_ticks(places, labels, **(SLANTED if is_crowded else {}))


def compute_outline(mask: ArrayLike) -> list[Segment]:
    """Returns the segments around the cells `[nx, ny]` that are True."""
    padded = np.pad(np.asarray(mask, bool), 1)
    along_y = np.diff(padded, axis=0)[:, 1:-1]  # [nx + 1, ny]
    along_x = np.diff(padded, axis=1)[1:-1].T  # [ny + 1, nx]
    upright = [((x, y0), (x, y1)) for x, y0, y1 in find_runs(along_y)]
    level = [((x0, y), (x1, y)) for y, x0, x1 in find_runs(along_x)]
    return upright + level


def find_runs(edges: NDArray[np.bool_]) -> list[tuple[float, float, float]]:
    """Finds runs of True in `[lines, cells]`: (line, start, stop)."""
    changes = np.diff(np.pad(edges, ((0, 0), (1, 1))), axis=1)
    lines, places = np.nonzero(changes)  # a start and a stop in turn
    runs = np.stack([lines[::2], places[::2], places[1::2]], axis=1) - 0.5
    return [tuple(run) for run in runs.tolist()]


def draw_outline(axes: Axes, mask: ArrayLike, linewidth: float = 1.8) -> None:
    """Draws `compute_outline` on axes that count the cells from 0."""
    lines = LineCollection(
        compute_outline(mask),
        colors=OUTLINE_COLOR,
        linewidths=linewidth,
        capstyle="projecting",  # closes the corners
        label=OUTLINE_LABEL,
        # Half of a line along the end of the grid lies outside of the axes.
        clip_on=False,
        zorder=3,
        in_layout=False,
    )
    axes.add_collection(lines, autolim=False)
