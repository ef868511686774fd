"""Maps of a number over the grid of two factors."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.argument_checks import require
from tfcomp.figures.cells import NO_VALUE_COLOR, get_map_aspect, show_map
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


def draw_maps(
    maps: Mapping[str, GridMap],
    *,
    label: str,
    title: str = "",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draws maps over the factor grid, x to the right and y upwards.

    All share one color scale, so that they compare; it reaches by default from
    the smallest to the largest of all values. The label says what it means,
    with units. What is not finite is gray, and the region of held-out points
    is outlined.
    """
    require(maps, "maps must have at least one entry")
    shapes = {name: np.shape(found.values) for name, found in maps.items()}
    is_flat = all(len(shape) == 2 for shape in shapes.values())
    require(is_flat, "maps must be of two factors each", shapes)
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
        image = show_map(axes, found, norm)
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
