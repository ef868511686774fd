"""Maps of two factors, similarity matrices, and outlines of regions."""

import math
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
GRAM_SIZE = 2.5  # inches, of a similarity matrix
# Ends ((x0, y0), (x1, y1)) of a line.
Segment = tuple[tuple[float, float], tuple[float, float]]
# Round parts of a circle, as multiples of powers of ten.
_DEGREES = (1, 1.5, 3, 4.5, 6, 9, 10)


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
    aspects = [get_map_aspect(m.values.shape) for m in maps.values()]
    num_rows, num_columns = layout.arrange_panels(len(maps), MAX_COLUMNS)
    # The additions make room for color bar, axis names and titles.
    height = panel_size + (0.4 if is_shared else 1.0)
    width = panel_size * max(aspects)
    size = num_columns * width + 1.6, num_rows * height + 0.8
    figure, grid = layout.make_panels((num_rows, num_columns), size, pad=0.08)
    panels = layout.keep_panels(grid, len(maps))
    for index, (axes, name) in enumerate(zip(panels, maps, strict=True)):
        image = show_map(axes, maps[name], norm, cmap=cmap)
        layout.add_panel_title(axes, name, panel_size * aspects[index])
        # Where all panels have the same axes, only the outer ones are named.
        is_lowest = not is_shared or index + num_columns >= len(panels)
        is_first = not is_shared or index % num_columns == 0
        x, y = maps[name].factors
        axes.set_xlabel(x.label if is_lowest else "")
        axes.set_ylabel(y.label if is_first else "")
        axes.tick_params(labelbottom=is_lowest, labelleft=is_first)
    figure.colorbar(image, ax=panels, label=label, aspect=25, pad=0.02)
    gray = None if finite.size == numbers.size else NO_VALUE_COLOR
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
        # Hue, saturation and value may be the factors.
        table["number" if "value" in names else "value"] = drawn.values.ravel()
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
                draw_border(num_id - 0.5, color=OUTLINE_COLOR, lw=1.0)
        turn = 90 if names else 0
        axes.set_xticks(list(ticks.values()), list(ticks), rotation=turn)
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.tick_params(length=0)
        layout.add_panel_title(axes, name, GRAM_SIZE)
    figure.colorbar(image, ax=list(grid), label="similarity", pad=0.02)
    table = partial(melt, arrays, ("matrix", "row", "column"), "similarity")
    return layout.finish_figure(figure, title, table)


def show_map(
    axes: Axes,
    found: GridMap,
    norm: Normalize | None = None,
    linewidth: float = 1.8,
    cmap: str | None = None,
) -> AxesImage:
    """Shows a map of two factors, with their values at its axes."""
    num_x, num_y = found.values.shape
    aspect = num_x / num_y / get_map_aspect(found.values.shape)
    image = show_cells(axes, found.values.T, norm, cmap, aspect=aspect)
    label_values(axes.xaxis, found.factors[0])
    label_values(axes.yaxis, found.factors[1])
    if found.mask is not None:
        draw_outline(axes, found.mask, linewidth)
    if found.factors[1].name in found.downward:
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
    places, labels = _choose_ticks(factor)
    is_long = isinstance(axis, XAxis) and sum(map(len, labels)) > 26
    axis.set_ticks(places, labels, **(SLANTED if is_long else {}))


def _choose_ticks(factor: Factor) -> tuple[np.ndarray, list[str]]:
    values = factor.values()
    is_few = len(values) <= MAX_TICKS
    if is_few or factor.names or factor.levels or factor.categorical:
        most = 10 if factor.names else MAX_TICKS
        shown = np.arange(0, len(values), math.ceil(len(values) / most))
        return shown, [factor.describe(values[place]) for place in shown]
    steps = _DEGREES if factor.unit == "degrees" else (1, 2, 2.5, 5, 10)
    is_whole = np.array_equal(values, np.round(values))
    locator = MaxNLocator(MAX_TICKS - 1, steps=steps, integer=is_whole)
    numbers = np.asarray(locator.tick_values(values[0], values[-1]))
    places = (numbers - factor.low) / factor.step
    is_inside = (places > -0.5) & (places < len(values) - 0.5)
    return places[is_inside], [f"{n:g}" for n in numbers[is_inside].round(9)]


def compute_outline(mask: ArrayLike) -> list[Segment]:
    """Returns the segments around the cells `[nx, ny]` that are True."""
    padded = np.pad(np.asarray(mask, bool), 1)
    along_y = np.diff(padded, axis=0)[:, 1:-1]  # [nx + 1, ny]
    along_x = np.diff(padded, axis=1)[1:-1].T  # [ny + 1, nx]
    upright = [((x, y0), (x, y1)) for x, y0, y1 in find_runs(along_y)]
    return upright + [((x0, y), (x1, y)) for y, x0, x1 in find_runs(along_x)]


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
