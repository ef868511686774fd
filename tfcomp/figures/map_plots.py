"""Maps of a number over the grid of two factors."""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.argument_checks import require
from tfcomp.figures.argument_checks import require_one_shape
from tfcomp.figures.cells import NO_VALUE_COLOR
from tfcomp.figures.cells import get_map_aspect
from tfcomp.figures.cells import show_map
from tfcomp.figures.layout import add_panel_title
from tfcomp.figures.layout import arrange_panels
from tfcomp.figures.layout import finish_figure
from tfcomp.figures.layout import keep_panels
from tfcomp.figures.layout import make_panels

MAX_COLUMNS = 4
# Height of a row of maps in inches, and where there are only one or two.
PANEL_SIZE = 2.3
PANEL_SIZES = {1: 4.0, 2: 3.0}


def draw_maps(
    maps: Mapping[str, ArrayLike],
    mask: ArrayLike | None,
    *,
    label: str,
    axis_names: tuple[str, str],
    title: str = "",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draws maps over the factor grid, x to the right and y upwards.

    All share one color scale, so that they compare.

    Args:
        maps: Title of a map to a number per cell, `[nx, ny]`; not finite is
            shown in gray.
        mask: True inside the region to outline, `[nx, ny]`; None without one.
        label: What the colors mean, with units.
        axis_names: Names of the first and the second factor, with units.
        title: Of the figure.
        limits: Ends of the color scale, by default the smallest and the
            largest of all values.
    """
    arrays = {name: np.asarray(array, float) for name, array in maps.items()}
    require(arrays, "maps must have at least one entry")
    shapes = {name: array.shape for name, array in arrays.items()}
    shapes |= {} if mask is None else {"mask": np.shape(mask)}
    rule = "All maps and the mask must have the same shape [nx, ny]"
    require_one_shape(shapes, 2, rule)
    numbers = np.stack(list(arrays.values()))
    finite = numbers[np.isfinite(numbers)]
    ends = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    norm = Normalize(*(limits or ends))
    panel_size = PANEL_SIZES.get(len(arrays), PANEL_SIZE)
    width = panel_size * get_map_aspect(numbers.shape[1:])
    num_rows, num_columns = arrange_panels(len(arrays), MAX_COLUMNS)
    # The additions make room for color bar, axis names and titles.
    size = num_columns * width + 1.6, num_rows * (panel_size + 0.4) + 0.8
    figure, grid = make_panels((num_rows, num_columns), size, pad=0.08)
    panels = keep_panels(grid, len(arrays))
    for axes, (name, array) in zip(panels, arrays.items(), strict=True):
        image = show_map(axes, array, mask, norm)
        add_panel_title(axes, name, width)
    _name_axes(panels, num_columns, axis_names)
    figure.colorbar(image, ax=panels, label=label, aspect=25, pad=0.02)
    is_finite = finite.size == numbers.size
    finish_figure(figure, title, None if is_finite else NO_VALUE_COLOR)
    return figure


def _name_axes(
    panels: Sequence[Axes], columns: int, names: tuple[str, str]
) -> None:
    """Labels the outer axes only, since all panels have the same ones."""
    for index, axes in enumerate(panels):
        is_lowest = index + columns >= len(panels)
        is_first = index % columns == 0
        axes.set_xlabel(names[0] if is_lowest else "")
        axes.set_ylabel(names[1] if is_first else "")
        axes.tick_params(labelbottom=is_lowest, labelleft=is_first)
