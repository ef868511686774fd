"""Maps of two factors, matrices on a color scale, and outlines of regions.

Maps have x to the right and y upwards, and cell `(i, j)` of the grid at x = i,
y = j.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import OUTLINE_COLOR, OUTLINE_LABEL, SLANTED
from tfcomp.figures.exhibits import Plot, melt
from tfcomp.figures.image_files import tile_images

if TYPE_CHECKING:
    import pandas as pd

NO_VALUE_COLOR = "0.65"
MAX_COLUMNS = 4
NARROW_COLUMNS = 2
MAX_TICKS = 6
MAX_NAMES = 10  # names along an axis
MAX_LETTERS = 26  # of all labels that lie side by side
MAP_SIZE = 2.8  # inches
GRAM_SIZE = 2.5  # of a similarity matrix
TILE_SIZE = 0.8  # of a matrix of an embedding


def draw_maps(
    maps: Mapping[str, GridMap],
    *,
    label: str,
    title: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
) -> Plot:
    """Draws maps of two factors on one color scale; not finite is gray.

    Args:
        maps: Maps by the titles of their panels.
        label: The label of the color bar.
        title: The title of the figure.
        limits: The ends of the color scale, by default of the numbers.
        cmap: Colors; by default from rcParams.
    """
    arrays = [grid_map.values for grid_map in maps.values()]
    numbers = np.concatenate([array.ravel() for array in arrays])
    finite = numbers[np.isfinite(numbers)]
    if limits is None and finite.size:
        limits = (finite.min(), finite.max())
    low, high = limits or (0.0, 1.0)
    norm = Normalize(low, high)

    width = MAP_SIZE * max(get_map_aspect(array.shape) for array in arrays)
    max_columns = MAX_COLUMNS
    if exhibits.is_narrow():
        max_columns = NARROW_COLUMNS
    num_rows, num_columns = exhibits.arrange_panels(len(maps), max_columns)
    planes = {(grid.factors, grid.downward) for grid in maps.values()}
    has_one_plane = len(planes) == 1
    # The additions make room for color bar, axis names and titles.
    total_width = num_columns * (width + 0.5) + 1.2
    total_height = num_rows * (MAP_SIZE + 0.8) + 0.4
    pad = 0.05
    if has_one_plane:  # inner panels have no axis names
        total_width = num_columns * (width + 0.1) + 1.7
        total_height = num_rows * (MAP_SIZE + 0.4) + 0.8
    elif num_rows > 1:  # titles keep clear of the axis names above them
        pad = 0.14
    figure, grid = exhibits.make_panels(
        shape=(num_rows, num_columns),
        size=(total_width, total_height),
        pad=pad,
    )
    panels = exhibits.keep_panels(grid, len(maps))

    titled = zip(panels, maps.items(), strict=True)
    for axes, (name, grid_map) in titled:
        image = show_map(
            axes,
            grid_map,
            norm,
            cmap,
        )
        exhibits.add_panel_title(axes, name, width)
    if has_one_plane:
        _keep_outer_labels(panels, num_columns)

    figure.colorbar(
        image,
        ax=panels,
        label=label,
        aspect=25,
        pad=0.02,
    )
    if finite.size < numbers.size:
        explain_gaps(panels[0], NO_VALUE_COLOR)
    table = partial(tabulate_maps, maps)
    return exhibits.finish_figure(figure, title, table)


def _keep_outer_labels(panels: Sequence[Axes], num_columns: int) -> None:
    """Removes names and values that the panel to the left or below has.

    Args:
        panels: Panels of one plane, row by row.
        num_columns: The panels of a full row.
    """
    for number, axes in enumerate(panels):
        if number % num_columns > 0:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
        if number + num_columns < len(panels):
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)


def tabulate_maps(maps: Mapping[str, GridMap]) -> pd.DataFrame:
    """Returns a row for each cell: values of the factors, number, held out."""
    import pandas as pd  # here: training needs none

    tables = []
    for name, grid_map in maps.items():
        names = [factor.name for factor in grid_map.factors]
        values = [factor.values() for factor in grid_map.factors]
        points = pd.MultiIndex.from_product(values, names=names)
        table = points.to_frame(index=False)
        table.insert(0, "map", name)
        column = "value"
        if "value" in names:  # as hue, saturation and value may be
            column = "number"
        table[column] = grid_map.values.ravel()
        if grid_map.mask is not None:
            table["held_out"] = grid_map.mask.ravel()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def draw_gram_matrices(
    matrices: Mapping[str, np.ndarray],
    num_id: int,
    *,
    title: str = "",
) -> Plot:
    """Draws similarity matrices on a scale from 0 (dark) to 1.

    Args:
        matrices: Arrays [n, n] by the titles of their panels.
        num_id: The number of ID points, which come first; OOD points follow.
        title: The title of the figure.
    """
    count = len(next(iter(matrices.values())))
    places = [num_id / 2, (num_id + count) / 2]
    labels = ["ID", "OOD"]
    border = num_id - 0.5

    num_panels = len(matrices)
    max_columns = num_panels
    if exhibits.is_narrow():
        max_columns = NARROW_COLUMNS
    num_rows, num_columns = exhibits.arrange_panels(num_panels, max_columns)
    figure, grid = exhibits.make_panels(
        shape=(num_rows, num_columns),
        size=(GRAM_SIZE * num_columns + 1.0, GRAM_SIZE * num_rows + 0.9),
        pad=0.05,
    )
    panels = exhibits.keep_panels(grid, num_panels)
    titled = zip(panels, matrices.items(), strict=True)
    for axes, (name, matrix) in titled:
        image = axes.imshow(
            matrix,
            vmin=0.0,
            vmax=1.0,
            interpolation="auto",
        )
        axes.axhline(
            border,
            color=OUTLINE_COLOR,
            lw=1.0,
        )
        axes.axvline(
            border,
            color=OUTLINE_COLOR,
            lw=1.0,
        )
        axes.set_xticks(places, labels)
        axes.set_yticks(places, labels)
        axes.tick_params(length=0)
        exhibits.add_panel_title(axes, name, GRAM_SIZE)
    _keep_outer_labels(panels, num_columns)

    figure.colorbar(
        image,
        ax=panels,
        label="similarity",
        pad=0.02,
    )
    names = ("matrix", "row", "column")
    table = partial(
        melt,
        matrices,
        names,
        "similarity",
    )
    return exhibits.finish_figure(figure, title, table)


def draw_embeddings(
    matrices: ArrayLike,
    levels: Sequence[str],
    *,
    factor_label: str,
    title: str = "",
) -> Plot:
    """Draws the matrices of a factor as tiles, on one color scale.

    Args:
        matrices: Matrices [V, rows, columns], one for each value.
        levels: The values, as text.
        factor_label: The label of the factor.
        title: The title of the figure.
    """
    matrices = np.asarray(matrices, float)
    count, height, width = matrices.shape
    num_columns = math.ceil(math.sqrt(2 * count))
    num_rows = math.ceil(count / num_columns)
    # Gray room, which is NaN, parts the tiles and has their levels.
    room = math.ceil(height / 4)
    upright = matrices[:, ::-1]
    framed = np.pad(
        upright,
        [(0, 0), (room, 0), (0, 1)],
        constant_values=np.nan,
    )
    sheet = tile_images(
        framed,
        num_columns,
        empty=np.nan,
    )

    sheet_width = TILE_SIZE * num_columns + 1.2
    sheet_height = TILE_SIZE * num_rows + 1.0
    figure = exhibits.make_figure((sheet_width, sheet_height))
    axes = figure.subplots()
    limit = find_limit(matrices)
    image = _show_symmetric(axes, sheet, limit)
    axes.invert_yaxis()  # the first tile is at the top
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(f"one matrix per value of {factor_label}")
    size = exhibits.scale_text(7)
    for number, level in enumerate(levels):
        row, column = divmod(number, num_columns)
        left = column * (width + 1)
        top = row * (height + room)
        axes.text(
            x=left,
            y=top + room / 2,
            s=level,
            fontsize=size,
            va="center",
        )
    figure.colorbar(image, label="entry")

    pairs = zip(levels, matrices, strict=True)
    named = dict(pairs)
    names = ("level", "row", "column")
    table = partial(
        melt,
        named,
        names,
        "entry",
    )
    return exhibits.finish_figure(figure, title, table)


def draw_profiles(
    profiles: Mapping[str, np.ndarray],
    *,
    factor: Factor,
    title: str = "",
) -> Plot:
    """Draws profiles by axis of the image, a row of cells for each value.

    Args:
        profiles: Profiles [V, length] by the name of the axis.
        factor: The factor with V values.
        title: The title of the figure.
    """
    limit = max(map(find_limit, profiles.values()))
    num_panels = len(profiles)
    width = 3.0 * num_panels + 1.6
    figure, grid = exhibits.make_panels(
        shape=(1, num_panels),
        size=(width, 3.4),
        pad=0.08,
    )
    panels = list(grid[0])
    titled = zip(panels, profiles.items(), strict=True)
    for axes, (name, profile) in titled:
        image = _show_symmetric(axes, profile, limit)
        xlabel = f"number along the {name}"
        axes.set(
            xlabel=xlabel,
            ylabel=factor.label,
            title=name,
        )
        label_values(axes.yaxis, factor)
    figure.colorbar(
        image,
        ax=panels,
        label="profile",
        aspect=25,
    )
    names = ("axis", "level", "pixel")
    table = partial(
        melt,
        profiles,
        names,
        "profile",
    )
    return exhibits.finish_figure(figure, title, table)


def _show_symmetric(axes: Axes, array: np.ndarray, limit: float) -> AxesImage:
    """Shows numbers in red above 0 and in blue below."""
    norm = Normalize(-limit, limit)
    return show_cells(
        axes,
        array,
        norm,
        "RdBu_r",
    )


def find_limit(numbers: np.ndarray) -> float:
    """Returns the end of a color scale that outliers do not wash out."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    if not finite.any():
        return 1.0
    quantile = float(np.quantile(finite, 0.999))
    largest = float(finite.max())
    if 0 < 2.0 * quantile < largest:
        return quantile
    return largest


def show_map(
    axes: Axes,
    grid_map: GridMap,
    norm: Normalize | None = None,
    cmap: str | None = None,
) -> AxesImage:
    """Shows a map of two factors, with names and values at its axes.

    Args:
        axes: The axes.
        grid_map: The map.
        norm: The color scale, by default of its numbers.
        cmap: Colors; by default from rcParams.
    """
    num_x, num_y = grid_map.values.shape
    aspect = num_x / num_y / get_map_aspect((num_x, num_y))
    image = show_cells(
        axes,
        grid_map.values.T,
        norm,
        cmap,
        aspect=aspect,
    )
    x, y = grid_map.factors
    axes.set(xlabel=x.label, ylabel=y.label)
    label_values(axes.xaxis, x)
    label_values(axes.yaxis, y)
    if grid_map.mask is not None:
        draw_outline(axes, grid_map.mask)
    if y.name in grid_map.downward:
        axes.invert_yaxis()
    return image


def get_map_aspect(shape: Sequence[int]) -> float:
    """Returns width over height of a map of `(nx, ny)` cells."""
    num_x, num_y = shape
    aspect = max(0.7, num_x / num_y)
    return min(2.5, aspect)


def show_cells(
    axes: Axes,
    values: np.ndarray,
    norm: Normalize | None = None,
    cmap: str | None = None,
    no_value_color: str = NO_VALUE_COLOR,
    aspect: float = 1.0,
) -> AxesImage:
    """Shows cells, counted from 0, the first row at the bottom.

    Args:
        axes: The axes.
        values: Numbers [rows, columns].
        norm: The color scale, by default of the numbers.
        cmap: Colors; by default from rcParams.
        no_value_color: The color of numbers that are not finite.
        aspect: Height over width of a cell.
    """
    name = cmap or matplotlib.rcParams["image.cmap"]
    colors = matplotlib.colormaps[name]
    colors = colors.with_extremes(bad=no_value_color)
    cells = np.ma.masked_invalid(values)
    return axes.imshow(
        cells,
        origin="lower",
        cmap=colors,
        norm=norm,
        aspect=aspect,
        interpolation="nearest",
    )


def explain_gaps(axes: Axes, color: str) -> None:
    """Adds the color of numbers that are not finite to the legend.

    Args:
        axes: One of the panels.
        color: The color.
    """
    axes.scatter(
        [],
        [],
        marker="s",
        color=color,
        label="no finite value",
    )


def label_values(axis: Axis, factor: Factor) -> None:
    """Labels an axis, on which cells count from 0, with values or names.

    Args:
        axis: The axis.
        factor: The factor that changes along it.
    """
    values = factor.values()
    max_ticks = MAX_TICKS
    if factor.names:
        max_ticks = MAX_NAMES
    num_values = len(values)
    step = math.ceil(num_values / max_ticks)
    places = np.arange(0, num_values, step)
    labels = [factor.describe(value) for value in values[::step]]

    style: dict[str, Any] = {}
    num_letters = sum(map(len, labels))
    if isinstance(axis, XAxis) and num_letters > MAX_LETTERS:
        style = SLANTED
    axis.set_ticks(
        places,
        labels,
        **style,
    )


def compute_outline(mask: ArrayLike) -> np.ndarray:
    """Returns the sides of cells that part True and False cells.

    Args:
        mask: Cells [nx, ny].

    Returns:
        Segments [n, 2, 2]: two ends, each (x, y).
    """
    cells = np.asarray(mask, bool)
    padded = np.pad(cells, 1)
    changes_x = np.diff(padded, axis=0)
    changes_y = np.diff(padded, axis=1)
    upright = np.argwhere(changes_x[:, 1:-1]) - 0.5  # of [nx + 1, ny]
    level = np.argwhere(changes_y[1:-1]) - 0.5  # of [nx, ny + 1]
    upright_stops = upright + [0, 1]
    level_stops = level + [1, 0]
    starts = np.concatenate([upright, level])
    stops = np.concatenate([upright_stops, level_stops])
    return np.stack([starts, stops], axis=1)


def draw_outline(axes: Axes, mask: ArrayLike, linewidth: float = 1.8) -> None:
    """Draws `compute_outline` on axes that count the cells from 0.

    Args:
        axes: The axes.
        mask: Cells [nx, ny]; the outline parts True from False.
        linewidth: Points.
    """
    segments = list(compute_outline(mask))
    lines = LineCollection(
        segments,
        colors=OUTLINE_COLOR,
        linewidths=exhibits.scale_text(linewidth),
        capstyle="projecting",  # closes the corners
        label=OUTLINE_LABEL,
        # Half of a line along the end of the grid lies outside of the axes.
        clip_on=False,
        zorder=3,
        in_layout=False,
    )
    axes.add_collection(lines, autolim=False)
