"""Maps and outlines: what is drawn, and where."""

import numpy as np
import pytest
from matplotlib.axis import Axis
from numpy.testing import assert_array_equal

from tests.figures import looks
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.exhibits import fit_width
from tfcomp.figures.map_plots import compute_outline, draw_maps, tabulate_maps

VALUES = np.arange(15.0).reshape(5, 3)  # [nx, ny]
MASK = np.isin(VALUES, [4, 7, 10])  # x from 1 to 3, y = 1
X = Factor(
    "x",
    5,
    0.0,
    4.0,
    "px",
)
Y = Factor(
    "y",
    3,
    0.0,
    2.0,
    "px",
)


def make_map(values: np.ndarray) -> GridMap:
    return GridMap(values, (X, Y), MASK)


def test_map_has_x_to_the_right_and_y_upwards():
    figure = draw_maps({"MSE": make_map(VALUES)}, label="MSE (1)")

    (axes,) = looks.get_image_axes(figure)
    (picture,) = axes.images
    assert_array_equal(picture.get_array(), VALUES.T)
    assert picture.origin == "lower"
    assert picture.get_clim() == (0, 14)
    assert picture.colorbar.ax.get_ylabel() == "MSE (1)"
    looks.check_axes(
        axes,
        xlim=(-0.5, 4.5),
        ylim=(-0.5, 2.5),
        xlabel="x (px)",
        ylabel="y (px)",
    )
    assert_array_equal(looks.get_outline(axes), compute_outline(MASK))
    assert looks.get_legend(figure) == ["held-out region"]


def test_the_table_has_a_row_for_each_cell():
    """A factor may have the name of the column of numbers."""
    value = Factor(
        "value",
        5,
        0.0,
        4.0,
    )

    table = tabulate_maps({"MSE": GridMap(VALUES, (value, Y), MASK)})

    x = table["value"].astype(int)
    y = table["y"].astype(int)
    assert len(table) == 15
    assert_array_equal(table["number"], VALUES[x, y])
    assert_array_equal(table["held_out"], MASK[x, y])


def test_maps_share_one_scale_and_what_is_not_finite_is_gray():
    broken = np.where(VALUES == 14, np.inf, VALUES)
    maps = {
        "first": make_map(VALUES - 20),
        "second": make_map(broken),
    }

    figure = draw_maps(
        maps,
        title="Stages",
        label="MSE",
    )

    panels = looks.get_image_axes(figure)
    assert looks.get_titles(figure)[:2] == list(maps)
    assert figure.get_suptitle() == "Stages"
    assert len(figure.axes) == 3  # with one color bar
    for axes in panels:
        (picture,) = axes.images
        assert picture.get_clim() == (-20, 13)
    # The last panel has the value that is not finite.
    colors = picture.to_rgba(picture.get_array())[..., :3]  # [ny, nx, 3]
    assert np.ptp(colors[2, 4]) == 0
    assert np.ptp(colors[2, 3]) > 0.1
    legend = ["held-out region", "no finite value"]
    assert looks.get_legend(figure) == legend


def test_maps_of_one_plane_have_names_at_the_outer_axes_alone():
    """Of five maps in rows of three, the last column ends above."""
    maps = {name: make_map(VALUES) for name in "abcde"}
    turned = {
        "a": make_map(VALUES),
        "b": GridMap(VALUES.T, (Y, X)),
    }

    panels = looks.get_image_axes(draw_maps(maps, label="MSE"))
    others = looks.get_image_axes(draw_maps(turned, label="MSE"))

    x_names = [axes.get_xlabel() for axes in panels]
    y_names = [axes.get_ylabel() for axes in panels]
    assert x_names == ["", "", "x (px)", "x (px)", "x (px)"]
    assert y_names == ["y (px)", "", "", "y (px)", ""]
    assert [axes.get_ylabel() for axes in others] == ["y (px)", "x (px)"]


def test_a_column_of_print_has_two_maps_side_by_side():
    maps = {name: make_map(VALUES) for name in "abc"}

    with fit_width("column"):
        figure = draw_maps(maps, label="MSE")

    panels = looks.get_image_axes(figure)
    places = {round(axes.get_position().x0, 3) for axes in panels}
    assert len(places) == 2


def read_ticks(axis: Axis) -> dict[int, str]:
    labels = [label.get_text() for label in axis.get_ticklabels()]
    return dict(zip(axis.get_ticklocs(), labels, strict=True))


def test_axes_show_values_and_names():
    angle = Factor(
        "cut",
        12,
        0.0,
        360.0,
        unit="degrees",
        periodic=True,
    )
    radius = Factor(
        "radius",
        3,
        1.0,
        8.0,
        levels=(1.0, 2.5, 8.0),
    )
    shape = Factor(
        "shape",
        2,
        0.0,
        1.0,
        names=("box", "heart"),
    )
    maps = {
        "a": GridMap(np.eye(12, 3), (angle, radius)),
        "b": GridMap(np.eye(3, 2), (radius, shape)),
    }

    figure = draw_maps(maps, label="MSE")

    first, second = looks.get_image_axes(figure)
    degrees = {place: str(30 * place) for place in range(0, 12, 2)}
    assert read_ticks(first.xaxis) == degrees
    assert read_ticks(first.yaxis) == {
        0: "1",
        1: "2.5",
        2: "8",
    }
    assert read_ticks(second.yaxis) == {
        0: "box",
        1: "heart",
    }


@pytest.mark.parametrize("seed", range(5))
def test_outlines_part_cells_from_their_neighbors(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 10, 2)
    mask = rng.random(shape) < rng.random()

    segments = compute_outline(mask)

    padded = np.pad(mask, 1)
    expected = []
    for x, y in np.argwhere(mask):
        for right, up in [(1, 0), (-1, 0), (0, 1), (0, -1)]:
            if not padded[1 + x + right, 1 + y + up]:
                expected.append([x + right / 2, y + up / 2])
    middles = segments.mean(axis=1)
    lengths = np.abs(np.diff(segments, axis=1)).sum(axis=(1, 2))
    assert sorted(middles.tolist()) == sorted(expected)
    assert (lengths == 1).all()
