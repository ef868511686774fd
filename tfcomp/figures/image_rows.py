"""Panels of images, and of points: samples of models, manifolds of stages.

Images have their first row at the bottom, unless their data say otherwise.
"""

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import OUTLINE_LABEL, title_stage
from tfcomp.figures.exhibits import Plot, melt
from tfcomp.figures.image_files import arrange_channels
from tfcomp.figures.map_plots import draw_outline, explain_gaps, show_cells

PANEL_SIZE = 1.5  # inches, of an image
TITLE_LETTERS = 10  # of an inch above a panel
TITLE_LINE = 0.16  # inches, of a further line of a title
LABEL_LETTERS = 8  # of an inch beside a panel
TITLE_PAD = 9  # points; circles reach beyond panels
# No shade of the gray scale, so that a model that diverged is not taken for
# one that draws gray.
NO_VALUE_COLOR = "#b9a3e3"
POSITION_COLOR = "#ff7f0e"
# Of the width of a panel: wide enough to leave the peak in sight.
CIRCLE_SHARE = 0.15
MANIFOLD_SIZE = 2.3  # inches
MAX_COLUMNS = 6
MAX_EDGES = 300


def draw_rows(
    rows: Mapping[str, ArrayLike],
    positions: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    title: str = "",
    first_row: str = "bottom",
    column_titles: Sequence[str] = (),
) -> Plot:
    """Draws rows of images.

    Args:
        rows: Images [n, H, W, ...] by the labels of their rows.
        positions: Places [n, 2] in pixels that are circled, or NaN.
        mask: Pixels [W, H] whose outline is drawn over all images.
        title: The title of the figure.
        first_row: Whether the first row of pixels is at the `bottom` or `top`.
        column_titles: Titles of the n columns.
    """
    stacks = {}
    for label, images in rows.items():
        stacks[label] = arrange_channels(images)
    first = next(iter(stacks.values()))
    num_images, image_height, image_width = first.shape[:3]
    panel_height = PANEL_SIZE * min(1.0, image_height / image_width)

    # Wide enough for the legend.
    width = max(4.5, PANEL_SIZE * num_images + 0.4)
    height = panel_height * len(stacks) + 0.6
    figure, panels = exhibits.make_panels(
        shape=(len(stacks), num_images),
        size=(width, height),
        pad=0.06,
    )
    # A label has lines as long as its panels are high.
    letters = max(4, int(panel_height * LABEL_LETTERS))
    labeled = zip(panels, stacks.items(), strict=True)
    for row, (label, images) in labeled:
        _show_row(
            row,
            images,
            mask,
            first_row,
        )
        text = textwrap.fill(
            label,
            letters,
            break_long_words=False,
        )
        row[0].set_ylabel(text, fontsize=exhibits.scale_text(12))
    if positions is not None:
        _mark_positions(panels, np.asarray(positions))
    _title_columns(figure, panels[0], column_titles)
    if not all(np.isfinite(images).all() for images in stacks.values()):
        explain_gaps(panels[0, 0], NO_VALUE_COLOR)
    names = ("row", "image", "y", "x", "channel")
    table = partial(
        melt,
        stacks,
        names,
        "pixel",
    )
    return exhibits.finish_figure(figure, title, table)


def _mark_positions(panels: np.ndarray, positions: np.ndarray) -> None:
    """Circles the place of each column in all of its images.

    Args:
        panels: The panels, [rows, n].
        positions: Places in pixels, [n, 2]; a stripe, with NaN, is no place.
    """
    figure = panels[0, 0].get_figure()
    num_images = len(positions)
    panel_points = 72 * figure.get_figwidth() / (num_images + 0.3)
    diameter = CIRCLE_SHARE * panel_points
    for column, (x, y) in zip(panels.T, positions, strict=True):
        if np.isnan([x, y]).any():
            continue
        for axes in column:
            axes.plot(
                x,
                y,
                "o",
                color=POSITION_COLOR,
                fillstyle="none",
                markersize=diameter,
                markeredgewidth=diameter / 14,
                clip_on=False,  # whole at the border
                in_layout=False,
                zorder=4,
                label="true position",
            )


def _title_columns(
    figure: Plot,
    row: Sequence[Axes],
    titles: Sequence[str],
) -> None:
    """Writes titles above the first panels of a row, and makes room for them.

    Lines are wrapped, which would run into the titles of other columns.

    Args:
        figure: The figure, which becomes higher by the lines.
        row: Its first row of panels.
        titles: Titles of the first columns.
    """
    width = figure.get_figwidth() / len(row)
    letters = int(width * TITLE_LETTERS / exhibits.scale_text(1))
    size = exhibits.scale_text(10)
    num_lines = 0
    for axes, title in zip(row, titles, strict=False):
        wrapped = []
        for line in title.split("\n"):
            lines = textwrap.fill(
                line,
                letters,
                break_long_words=False,
            )
            wrapped.append(lines)
        text = "\n".join(wrapped)
        axes.set_title(
            text,
            fontsize=size,
            pad=TITLE_PAD,
        )
        num_lines = max(num_lines, text.count("\n"))
    room = exhibits.scale_text(TITLE_LINE) * num_lines
    figure.set_figheight(figure.get_figheight() + room)


def _show_row(
    row: Sequence[Axes],
    images: np.ndarray,
    mask: ArrayLike | None,
    first_row: str,
) -> None:
    """Shows a row of images [n, H, W, C]; the first one has a y axis.

    Args:
        row: The panels.
        images: The images.
        mask: As for `draw_rows`.
        first_row: As for `draw_rows`.
    """
    for axes, image in zip(row, images, strict=True):
        _show_image(axes, image)
        if mask is not None:
            draw_outline(
                axes,
                mask,
                linewidth=1.2,
            )
        if first_row == "top":
            axes.invert_yaxis()
        axes.yaxis.set_visible(axes is row[0])


def _show_image(axes: Axes, image: np.ndarray) -> None:
    """Shows one image [H, W] in gray, or [H, W, 3] in color."""
    if image.ndim == 3:
        is_number = np.isfinite(image)
        is_finite = is_number.all(axis=-1, keepdims=True)
        image = np.where(is_finite, image, to_rgb(NO_VALUE_COLOR))
        axes.imshow(
            image.clip(0, 1),
            origin="lower",
            interpolation="nearest",
        )
    else:
        show_cells(
            axes,
            image,
            Normalize(0, 1),
            "gray",
            NO_VALUE_COLOR,
        )
    axes.set(xticks=[], yticks=[])
    axes.xaxis.set_visible(False)  # or its place is looked for at length


def draw_manifolds(
    embeddings: Mapping[str, ArrayLike],
    factors: ArrayLike,
    is_ood: ArrayLike,
    *,
    space: Sequence[Factor],
    title: str = "",
) -> Plot:
    """Draws points of stages, colored by each factor in turn.

    Args:
        embeddings: Points [n, 2] by stage.
        factors: Values of the factors [n, F].
        is_ood: Whether a point is held out, [n].
        space: The factors. Points of a single ordered one form a curve.
        title: The title of the figure.
    """
    factors = np.asarray(factors, float)
    is_ood = np.asarray(is_ood, bool)

    num_stages = len(embeddings)
    rows, columns = exhibits.arrange_panels(num_stages, MAX_COLUMNS)
    num_rows = rows * len(space)
    # The additions make room for color bars and titles.
    width = columns * MANIFOLD_SIZE + 1.2
    height = num_rows * (MANIFOLD_SIZE + 0.1) + 0.8
    figure, grid = exhibits.make_panels(
        shape=(num_rows, columns),
        size=(width, height),
        pad=0.04,
    )
    is_curve = len(space) == 1 and not space[0].categorical

    for index, factor in enumerate(space):
        first_row = index * rows
        end_row = first_row + rows
        block = grid[first_row:end_row]
        panels = exhibits.keep_panels(block, num_stages)
        values = factors[:, index]
        colors = _make_colors(values, factor)
        shades = colors.to_rgba(values)

        stages = zip(panels, embeddings.items(), strict=True)
        for axes, (stage, points) in stages:
            places = np.asarray(points)
            if is_curve:
                _draw_curve(axes, places, factor.is_closed)
            _draw_points(
                axes,
                places,
                shades,
                is_ood,
            )
            if index == 0:
                exhibits.add_panel_title(
                    axes,
                    title_stage(stage),
                    MANIFOLD_SIZE,
                )

        bar = figure.colorbar(
            colors,
            ax=panels,
            pad=0.01,
        )
        bar.set_label(factor.label)
        if factor.names:
            ticks = factor.values().tolist()
            bar.set_ticks(ticks, labels=factor.names)

    names = ("stage", "point", "axis")
    table = partial(
        melt,
        embeddings,
        names,
        "coordinate",
    )
    return exhibits.finish_figure(figure, title, table)


def _make_colors(values: np.ndarray, factor: Factor) -> ScalarMappable:
    """Makes the colors of a factor: cyclic ones if it is periodic."""
    if factor.periodic:
        norm = Normalize(factor.low, factor.high)
        return ScalarMappable(norm, "twilight")
    low = np.nanmin(values)
    high = np.nanmax(values)
    norm = Normalize(low, high)
    return ScalarMappable(norm, "viridis")


def _draw_curve(axes: Axes, points: np.ndarray, is_closed: bool) -> None:
    """Joins points [n, 2] that follow each other."""
    if is_closed:
        first = points[:1]
        points = np.concatenate([points, first])
    x, y = points.T
    axes.plot(
        x,
        y,
        color="0.45",
        lw=0.8,
    )


def _draw_points(
    axes: Axes,
    points: np.ndarray,
    shades: np.ndarray,
    is_ood: np.ndarray,
) -> None:
    """Draws points [n, 2] in their colors; those held out are larger."""
    axes.set(xticks=[], yticks=[])
    axes.set_box_aspect(1)
    if not np.isfinite(points).any():
        axes.set_xlabel("no variance")
    # The ends of the cyclic colors are nearly white, and need an edge; edges of
    # hundreds of points would hide the colors.
    edge = 0.25
    if len(points) > MAX_EDGES:
        edge = 0
    looks = [
        ("training region", ~is_ood, "o", 6),
        (OUTLINE_LABEL, is_ood, "D", 18),
    ]
    for label, is_drawn, marker, size in looks:
        if not is_drawn.any():
            continue
        x, y = points[is_drawn].T
        axes.scatter(
            x,
            y,
            c=shades[is_drawn],
            s=size,
            marker=marker,
            linewidths=edge,
            edgecolors="0.3",
            zorder=3,
        )
        # Points have many colors, the legend one.
        axes.scatter(
            [],
            [],
            s=size,
            marker=marker,
            color="0.3",
            label=label,
        )
