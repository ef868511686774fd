"""Maps of a number over the grid of two factors."""

import math
from collections.abc import Mapping
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from tfcomp.figures.layout import add_legend
from tfcomp.figures.layout import add_panel_title
from tfcomp.figures.layout import add_title
from tfcomp.figures.layout import settle_layout
from tfcomp.figures.region_marks import draw_outline

AXIS_NAMES = ("x (px)", "y (px)")
NO_VALUE_COLOR = "0.65"

# Width over height of a panel. Cells are square where their grid fits in.
_MIN_ASPECT = 0.7
_MAX_ASPECT = 2.5


def draw_map(
    values: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    title: str = "",
    label: str = "",
    vmin: float | None = None,
    vmax: float | None = None,
    cmap: str = "viridis",
    axis_names: tuple[str, str] = AXIS_NAMES,
) -> Figure:
    """Draws one map over the factor grid, x to the right and y upwards.

    Args:
        values: A number per cell, `[nx, ny]`; not finite is shown in grey.
        mask: True inside the region to outline, `[nx, ny]`.
        title: Title of the map.
        label: What the colours mean, with units.
        vmin: Lower end of the colour scale, by default the smallest value.
        vmax: Upper end of the colour scale, by default the largest value.
        cmap: Name of the colour map.
        axis_names: Names of the first and the second factor, with units.

    Returns:
        The figure.
    """
    return draw_maps(
        {title: values},
        mask,
        label=label,
        vmin=vmin,
        vmax=vmax,
        cmap=cmap,
        axis_names=axis_names,
        panel_size=4.0,
    )


def draw_maps(
    maps: Mapping[str, ArrayLike],
    mask: ArrayLike | None = None,
    *,
    title: str = "",
    label: str = "",
    vmin: float | None = None,
    vmax: float | None = None,
    cmap: str = "viridis",
    axis_names: tuple[str, str] = AXIS_NAMES,
    max_columns: int = 6,
    panel_size: float = 2.3,
) -> Figure:
    """Draws a row of maps on one colour scale, so that they compare.

    Args:
        maps: Title of a map to a number per cell, `[nx, ny]`; not finite is
            shown in grey.
        mask: True inside the region to outline, `[nx, ny]`.
        title: Title of the figure.
        label: What the colours mean, with units.
        vmin: Lower end of the colour scale, by default the smallest of all
            values.
        vmax: Upper end of the colour scale, by default the largest of all.
        cmap: Name of the colour map.
        axis_names: Names of the first and the second factor, with units.
        max_columns: More maps than this are spread over several rows.
        panel_size: Height of a row of maps, in inches.

    Returns:
        The figure.
    """
    arrays = {name: np.asarray(array, float) for name, array in maps.items()}
    _check_shapes(arrays, mask)
    norm = _make_norm(list(arrays.values()), vmin, vmax)
    num_rows = math.ceil(len(arrays) / max_columns)
    num_columns = math.ceil(len(arrays) / num_rows)  # rows of similar length
    width = panel_size * _get_aspect(next(iter(arrays.values())))
    figure, grid = _make_panels(num_rows, num_columns, width, panel_size)
    panels = grid[: len(arrays)]
    for axes, (name, array) in zip(panels, arrays.items(), strict=True):
        image = _draw_panel(axes, array, mask, norm, cmap)
        add_panel_title(axes, name, width)
    for axes in grid[len(arrays) :]:
        axes.remove()
    _name_axes(panels, num_columns, axis_names)
    figure.colorbar(image, ax=panels, label=label, aspect=25, pad=0.02)
    add_title(figure, title)
    is_finite = all(np.isfinite(array).all() for array in arrays.values())
    add_legend(figure, None if is_finite else NO_VALUE_COLOR)
    settle_layout(figure)
    return figure


def _make_panels(
    num_rows: int, num_columns: int, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    """Makes a figure and its axes, row by row, of a size in inches."""
    # The additions make room for colour bar, axis names, titles and legend.
    figure = Figure(
        figsize=(num_columns * width + 1.6, num_rows * (height + 0.4) + 1.1),
        layout="compressed",
    )
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.09)
    grid = figure.subplots(num_rows, num_columns, squeeze=False)
    return figure, list(grid.ravel())


def _draw_panel(
    axes: Axes,
    values: np.ndarray,
    mask: ArrayLike | None,
    norm: Normalize,
    cmap: str,
) -> AxesImage:
    colors = matplotlib.colormaps[cmap].with_extremes(bad=NO_VALUE_COLOR)
    image = axes.imshow(
        np.ma.masked_invalid(values).T,  # imshow takes [row = y, column = x]
        origin="lower",
        cmap=colors,
        norm=norm,
        aspect="equal" if _has_square_cells(values) else "auto",
        interpolation="nearest",
    )
    if mask is not None:
        draw_outline(axes, mask)
    return image


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


def _get_aspect(values: np.ndarray) -> float:
    num_x, num_y = values.shape
    return min(_MAX_ASPECT, max(_MIN_ASPECT, num_x / num_y))


def _has_square_cells(values: np.ndarray) -> bool:
    num_x, num_y = values.shape
    return _get_aspect(values) == num_x / num_y


def _make_norm(
    arrays: Sequence[np.ndarray], vmin: float | None, vmax: float | None
) -> Normalize:
    finite = np.concatenate([array[np.isfinite(array)] for array in arrays])
    if finite.size == 0:
        finite = np.array([0.0, 1.0])
    return Normalize(
        finite.min() if vmin is None else vmin,
        finite.max() if vmax is None else vmax,
    )


def _check_shapes(
    arrays: Mapping[str, np.ndarray], mask: ArrayLike | None
) -> None:
    if not arrays:
        raise ValueError("maps must have at least one entry, received none.")
    shapes = {name: array.shape for name, array in arrays.items()}
    if mask is not None:
        shapes["mask"] = np.shape(mask)
    if len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 2:
        raise ValueError(
            "All maps and the mask must have the same shape [nx, ny], "
            f"received {shapes}."
        )
