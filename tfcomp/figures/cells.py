"""Arrays of numbers as colored cells: maps, images and matrices."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage

from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.region_marks import draw_outline
from tfcomp.figures.value_axes import label_values

NO_VALUE_COLOR = "0.65"

# Width over height of a map. Its cells are square where its grid fits in.
_MIN_ASPECT = 0.7
_MAX_ASPECT = 2.5


def show_cells(
    axes: Axes,
    values: np.ndarray,
    norm: Normalize | None = None,
    cmap: str = "viridis",
    no_value_color: str = NO_VALUE_COLOR,
    aspect: float = 1.0,
) -> AxesImage:
    """Shows a cell per number, the first row at the bottom.

    The axes count the cells from 0. Colors reach by default from the least
    number to the largest one; `aspect` is the height of a cell over its width.
    Returns the image, for a color bar.
    """
    return axes.imshow(
        np.ma.masked_invalid(values),
        origin="lower",
        cmap=matplotlib.colormaps[cmap].with_extremes(bad=no_value_color),
        norm=norm,
        aspect=aspect,
        interpolation="nearest",
    )


def show_map(
    axes: Axes,
    found: GridMap,
    norm: Normalize | None = None,
    linewidth: float = 1.8,
) -> AxesImage:
    """Shows a map of two factors, with their values at its axes.

    The outline of the held-out region is `linewidth` points wide.
    """
    num_x, num_y = found.values.shape
    aspect = num_x / num_y / get_map_aspect(found.values.shape)
    image = show_cells(axes, found.values.T, norm, aspect=aspect)
    x, y = found.factors
    label_values(axes.xaxis, x)
    label_values(axes.yaxis, y)
    if found.mask is not None:
        draw_outline(axes, found.mask, linewidth)
    return image


def get_map_aspect(shape: tuple[int, int]) -> float:
    """Returns width over height of the map of a grid `(nx, ny)`."""
    num_x, num_y = shape
    return min(_MAX_ASPECT, max(_MIN_ASPECT, num_x / num_y))
