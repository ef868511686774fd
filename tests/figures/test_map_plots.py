"""Maps and outlines: what is drawn, and where."""

import numpy as np
import pytest

from tests.figures.looks import get_image_axes, get_legend, get_outline
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.map_plots import (
    compute_outline,
    draw_maps,
    tabulate_maps,
)

VALUES = np.arange(15.0).reshape(5, 3)  # [nx, ny]
MASK = np.isin(VALUES, [4, 7, 10])  # x from 1 to 3, y = 1
X = Factor("x", 5, 0.0, 4.0, "px")
Y = Factor("y", 3, 0.0, 2.0, "px")


def test_map_has_x_to_the_right_and_y_upwards() -> None:
    grid_map = GridMap(VALUES, (X, Y), MASK)
    figure = draw_maps({"MSE": grid_map}, label="MSE (1)")
    (axes,) = get_image_axes(figure)
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), VALUES.T)
    assert image.origin == "lower"
    assert image.get_clim() == (0, 14)
    assert image.colorbar.ax.get_ylabel() == "MSE (1)"
    assert axes.get_xlim() == (-0.5, 4.5)
    assert axes.get_ylim() == (-0.5, 2.5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (px)", "y (px)")
    np.testing.assert_array_equal(get_outline(axes), compute_outline(MASK))
    assert get_legend(figure) == ["held-out region"]


def test_the_table_has_a_row_for_each_cell() -> None:
    table = tabulate_maps({"MSE": GridMap(VALUES, (X, Y), MASK)})
    cells = table.set_index(["x", "y"])
    assert len(cells) == 15
    for x, y in ((1, 1), (4, 2), (0, 1)):
        assert cells.loc[(x, y), "value"] == VALUES[x, y]
        assert cells.loc[(x, y), "held_out"] == MASK[x, y]
    # A factor may have the name of the column.
    factors = (Factor("value", 5, 0.0, 4.0), Factor("hue", 3, 0.0, 2.0))
    cells = tabulate_maps({"": GridMap(VALUES, factors)})
    assert cells["number"].tolist() == VALUES.ravel().tolist()


def test_maps_share_one_scale_and_what_is_not_finite_is_gray() -> None:
    broken = np.where(VALUES == 14, np.inf, VALUES)
    arrays = {"first": VALUES, "second": VALUES - 20, "third": broken}
    maps = {name: GridMap(a, (X, Y), MASK) for name, a in arrays.items()}
    figure = draw_maps(maps, title="Stages", label="MSE")
    panels = get_image_axes(figure)
    assert [axes.get_title() for axes in panels] == list(maps)
    assert {axes.images[0].get_clim() for axes in panels} == {(-20, 14)}
    assert len(figure.axes) == len(panels) + 1  # one color bar
    assert figure.get_suptitle() == "Stages"

    image = panels[2].images[0]
    colors = image.to_rgba(image.get_array())[..., :3]  # [ny, nx, 3]
    assert np.ptp(colors[2, 4]) == 0
    assert np.ptp(colors[2, 3]) > 0.1
    assert get_legend(figure) == ["held-out region", "no finite value"]


def test_axes_show_values_and_names() -> None:
    angle = Factor("cut", 12, 0.0, 360.0, unit="degrees", periodic=True)
    radius = Factor("radius", 3, 1.0, 8.0, levels=(1.0, 2.5, 8.0))
    shape = Factor("shape", 2, 0.0, 1.0, names=("box", "heart"))
    first = GridMap(np.eye(12, 3), (angle, radius))
    second = GridMap(np.eye(3, 2), (radius, shape))
    figure = draw_maps({"a": first, "b": second}, label="MSE")
    ticks = []
    for axes in get_image_axes(figure):
        for axis in (axes.xaxis, axes.yaxis):
            labels = [text.get_text() for text in axis.get_ticklabels()]
            ticks.append((list(axis.get_ticklocs()), labels))
    assert ticks == [
        ([0, 2, 4, 6, 8, 10], ["0", "60", "120", "180", "240", "300"]),
        ([0, 1, 2], ["1", "2.5", "8"]),
        ([0, 1, 2], ["1", "2.5", "8"]),
        ([0, 1], ["box", "heart"]),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_outlines_part_cells_from_their_neighbors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random(rng.integers(1, 10, 2)) < rng.random()
    inside = {(int(i), int(j)) for i, j in np.argwhere(mask)}
    expected = set()
    for i, j in inside:
        for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if (i + a, j + b) not in inside:
                expected.add((i + a / 2, j + b / 2))
    segments = compute_outline(mask)
    middles = {(float(x), float(y)) for x, y in segments.mean(axis=1)}
    assert middles == expected and len(segments) == len(expected)
    lengths = np.abs(segments[:, 1] - segments[:, 0]).sum(axis=1)
    assert (lengths == 1).all()
