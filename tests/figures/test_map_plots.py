"""Maps: what is drawn, and where."""

import numpy as np

from tests.figures.looks import get_image_axes, get_legend, get_outline
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures import map_plots
from tfcomp.figures.map_plots import compute_outline

LABELS = {"label": "MSE (1)"}
VALUES = np.arange(15.0).reshape(5, 3)  # [nx, ny]
MASK = np.isin(VALUES, [4, 7, 10])  # x from 1 to 3, y = 1


def label(values: np.ndarray, mask: np.ndarray) -> GridMap:
    sides = zip("xy", values.shape, strict=True)
    factors = (Factor(f, n, 0.0, max(n - 1.0, 1.0), "px") for f, n in sides)
    return GridMap(values, tuple(factors), mask)


def test_map_has_x_to_the_right_and_y_upwards() -> None:
    figure = map_plots.draw_maps({"MSE": label(VALUES, MASK)}, **LABELS)
    (axes,) = get_image_axes(figure)
    image = axes.images[0]
    np.testing.assert_array_equal(image.get_array(), VALUES.T)
    assert image.origin == "lower"
    assert axes.get_xlim() == (-0.5, 4.5) and axes.get_ylim() == (-0.5, 2.5)
    assert get_outline(axes) == compute_outline(MASK)
    assert axes.get_title() == "MSE"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (px)", "y (px)")
    assert image.get_clim() == (0, 14)
    assert image.colorbar.ax.get_ylabel() == "MSE (1)"
    assert get_legend(figure) == ["held-out region"]
    cells = figure.data.set_index(["x", "y"])
    assert (len(cells), cells["held_out"].sum()) == (15, 3)
    for x, y in ((1, 1), (4, 2), (0, 1)):
        assert cells.loc[(x, y), "value"] == VALUES[x, y]
        assert cells.loc[(x, y), "held_out"] == MASK[x, y]
    factors = (Factor("value", 5, 0.0, 4.0), Factor("hue", 3, 0.0, 2.0))
    cells = map_plots.tabulate_maps({"": GridMap(VALUES, factors, None)})
    assert cells["value"].tolist() == np.repeat(range(5), 3).tolist()
    assert cells["number"].tolist() == VALUES.ravel().tolist()


def test_maps_share_one_scale_and_one_bar() -> None:
    broken = np.where(VALUES == 14, np.inf, VALUES)
    maps = {"first": VALUES, "second": VALUES - 20, "third": broken}
    labelled = {name: label(array, MASK) for name, array in maps.items()}
    figure = map_plots.draw_maps(labelled, title="Stages", **LABELS)
    panels = get_image_axes(figure)
    assert [axes.get_title() for axes in panels] == list(maps)
    for axes, array in zip(panels, maps.values(), strict=True):
        shown = axes.images[0].get_array().filled(np.inf)
        np.testing.assert_array_equal(shown, array.T)
        assert axes.images[0].get_clim() == (-20, 14)
        assert get_outline(axes) == compute_outline(MASK)
    assert len(figure.axes) == len(panels) + 1
    assert figure.axes[-1].get_ylabel() == "MSE (1)"
    assert figure.get_suptitle() == "Stages"
    assert [axes.get_ylabel() for axes in panels] == ["y (px)", "", ""]
    # What is not finite is gray.
    image = panels[2].images[0]
    colors = image.to_rgba(image.get_array())[..., :3]  # [ny, nx, 3]
    red, green, blue = colors[2, 4]
    assert red == green == blue and 0.3 < red < 0.8
    assert np.ptp(colors[2, 3]) > 0.1
    assert get_legend(figure) == ["held-out region", "no finite value"]


def test_axes_show_values_and_names() -> None:
    angle = Factor("cut", 12, 0.0, 360.0, unit="degrees", periodic=True)
    radius = Factor("radius", 3, 1.0, 8.0, levels=(1.0, 2.5, 8.0))
    shape = Factor("shape", 2, 0.0, 1.0, names=("box", "heart"))
    first = GridMap(np.eye(12, 3), (angle, radius))
    second = GridMap(np.eye(3, 2), (radius, shape))
    figure = map_plots.draw_maps({"a": first, "b": second}, **LABELS)
    ticks = [
        {t.get_text(): t.get_position() for t in axis.get_ticklabels()}
        for axes in get_image_axes(figure)
        for axis in (axes.xaxis, axes.yaxis)
    ]
    angles, radii = ticks[:2]
    assert [x for x, _ in angles.values()] == [0, 3, 6, 9]
    assert list(angles) == ["0", "90", "180", "270"]
    assert [y for _, y in radii.values()] == [0, 1, 2]
    assert list(radii) == ["1", "2.5", "8"]
    assert list(ticks[2]) == ["1", "2.5", "8"]
    assert list(ticks[3]) == ["box", "heart"]
    names = [axes.get_xlabel() for axes in get_image_axes(figure)]
    assert names == ["cut (degrees)", "radius"]
