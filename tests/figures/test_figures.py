"""Maps, samples and rendering: what is drawn, where, on which scale."""

import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from tfcomp.figures import compute_outline
from tfcomp.figures import draw_maps
from tfcomp.figures import draw_rows
from tfcomp.figures import figure_to_array
from tfcomp.figures import figure_to_pdf
from tfcomp.figures import figure_to_png

LABELS = {"label": "MSE (1)", "axis_names": ("x (px)", "y (px)")}


@pytest.fixture
def values() -> np.ndarray:
    return np.arange(15.0).reshape(5, 3)  # [nx, ny]


@pytest.fixture
def mask() -> np.ndarray:
    mask = np.zeros((5, 3), bool)
    mask[1:4, 1] = True
    return mask


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).random((4, 3, 5))  # [n, H, W]


def draw_map(values: np.ndarray, mask: np.ndarray | None = None) -> Figure:
    return draw_maps({"MSE": values}, mask, **LABELS)


def make_rows(truth: np.ndarray, outputs: np.ndarray) -> dict:
    return {"truth": truth, "model": outputs}


def get_image_axes(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.images]


def get_outline(axes: Axes) -> list:
    lines = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert len(lines) == 1
    return [tuple(map(tuple, s)) for s in lines[0].get_segments()]


def get_legend(figure: Figure) -> list[str]:
    return [t.get_text() for legend in figure.legends for t in legend.texts]


def assert_text_is_apart(figure: Figure) -> None:
    """Checks that titles, names and legends are whole and do not overlap."""
    figure.draw_without_rendering()
    texts = figure.texts + figure.legends
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    boxes = [t.get_window_extent() for t in texts if t.get_visible()]
    boxes = [box for box in boxes if box.width > 1 and box.height > 1]
    for index, box in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width, texts[index]
        assert box.y0 >= 0 and box.y1 <= figure.bbox.height, texts[index]
        assert not any(box.overlaps(other) for other in boxes[:index])


def test_map_has_x_to_the_right_and_y_upwards(
    values: np.ndarray, mask: np.ndarray
) -> None:
    figure = draw_map(values, mask)
    (axes,) = get_image_axes(figure)
    image = axes.images[0]
    np.testing.assert_array_equal(image.get_array(), values.T)
    assert image.origin == "lower"
    assert axes.get_xlim() == (-0.5, 4.5) and axes.get_ylim() == (-0.5, 2.5)
    assert get_outline(axes) == compute_outline(mask)
    assert axes.get_title() == "MSE"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (px)", "y (px)")
    assert image.get_clim() == (0, 14)
    assert image.colorbar.ax.get_ylabel() == "MSE (1)"
    assert get_legend(figure) == ["held-out region"]


def test_brightest_pixel_of_the_picture_is_at_x_y() -> None:
    # Through the renderer: cell x = 4, y = 0 is at the lower right.
    values = np.zeros((5, 3))
    values[4, 0] = 1
    figure = draw_map(values)
    pixels = figure_to_array(figure)
    box = get_image_axes(figure)[0].get_window_extent()
    x = int(box.x0 + 0.9 * box.width)
    row = len(pixels) - int(box.y0 + box.height / 6)
    redness_of_yellow, redness_of_purple = 253, 68  # the ends of the scale
    assert pixels[row, x, 0] == redness_of_yellow
    assert pixels[row - int(box.height / 3), x, 0] == redness_of_purple
    assert pixels[row, x - int(box.width / 5), 0] == redness_of_purple


def test_given_limits(values: np.ndarray) -> None:
    figure = draw_maps({"MSE": values}, None, limits=(-1, 3), **LABELS)
    (axes,) = get_image_axes(figure)
    assert axes.images[0].get_clim() == (-1, 3)
    assert not axes.collections and not figure.legends


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_cells_without_a_finite_value_are_gray(
    values: np.ndarray, value: float
) -> None:
    values[4, 2] = value
    figure = draw_map(values)
    image = get_image_axes(figure)[0].images[0]
    assert image.get_clim() == (0, 13)
    colors = image.to_rgba(image.get_array())  # [ny, nx, 4]
    red, green, blue, _ = colors[2, 4]
    assert red == green == blue and 0.3 < red < 0.8
    assert np.ptp(colors[2, 3, :3]) > 0.1
    assert get_legend(figure) == ["no finite value"]


@pytest.mark.parametrize("value", [np.nan, 0.0, 3.0])
def test_constant_map_is_drawn(value: float) -> None:
    figure = draw_map(np.full((4, 4), value), np.zeros((4, 4), bool))
    assert figure_to_png(figure)


def test_maps_share_one_scale_and_one_bar(
    values: np.ndarray, mask: np.ndarray
) -> None:
    maps = {"first": values, "second": values - 20, "third": values * np.nan}
    figure = draw_maps(maps, mask, title="Stages", **LABELS)
    panels = get_image_axes(figure)
    assert [axes.get_title() for axes in panels] == list(maps)
    for axes, array in zip(panels, maps.values(), strict=True):
        np.testing.assert_array_equal(
            axes.images[0].get_array().filled(np.nan), array.T
        )
        assert axes.images[0].get_clim() == (-20, 14)
        assert get_outline(axes) == compute_outline(mask)
    assert len(figure.axes) == len(panels) + 1
    assert figure.axes[-1].get_ylabel() == "MSE (1)"
    assert figure.get_suptitle() == "Stages"
    assert [axes.get_ylabel() for axes in panels] == ["y (px)", "", ""]


def test_many_maps_fill_rows_evenly(values: np.ndarray) -> None:
    maps = {f"stage_{index}": values for index in range(8)}
    panels = get_image_axes(draw_maps(maps, None, **LABELS))
    assert len(panels) == 8
    assert panels[0].get_subplotspec().get_gridspec().get_geometry() == (2, 4)
    named = [axes.get_title() for axes in panels if axes.get_xlabel()]
    assert named == ["stage_4", "stage_5", "stage_6", "stage_7"]


@pytest.mark.parametrize("shape", [(28, 28), (6, 28), (28, 6), (1, 9), (9, 1)])
@pytest.mark.parametrize("num_maps", [1, 2, 7])
def test_text_of_maps_is_apart(shape: tuple[int, int], num_maps: int) -> None:
    values = np.linspace(-7, 1, np.prod(shape)).reshape(shape)
    names = [f"conv_transpose_block_{index}" for index in range(num_maps)]
    figure = draw_maps(
        dict.fromkeys(names, values),
        values > 0,
        title="Log-volume of every stage, run donut_depth4_bump_seed3, ID, OOD",
        **LABELS,
    )
    assert_text_is_apart(figure)


@pytest.mark.parametrize(
    ("maps", "mask_shape"),
    [
        ({}, None),
        ({"a": np.zeros(3)}, None),
        ({"a": np.zeros((3, 2)), "b": np.zeros((2, 3))}, None),
        ({"a": np.zeros((3, 2))}, (2, 3)),
    ],
)
def test_maps_must_have_one_shape(
    maps: dict, mask_shape: tuple[int, int] | None
) -> None:
    mask = None if mask_shape is None else np.ones(mask_shape, bool)
    with pytest.raises(ValueError, match="must have"):
        draw_maps(maps, mask, **LABELS)


def test_samples_show_truth_above_output(
    images: np.ndarray, mask: np.ndarray
) -> None:
    outputs = 2 * images[::-1]
    positions = np.array([[0, 2], [4, 0], [1.25, 1], [3, np.nan]])
    figure = draw_rows(make_rows(images, outputs), positions, mask, title="OOD")
    panels = np.reshape(figure.axes, (2, 4))
    for row, expected in zip(panels, (images, outputs), strict=True):
        for axes, image in zip(row, expected, strict=True):
            np.testing.assert_array_equal(axes.images[0].get_array(), image)
            assert axes.images[0].origin == "lower"
            assert axes.images[0].get_clim() == (0, 1)
            assert get_outline(axes) == compute_outline(mask)
        for axes, position in zip(row[:3], positions, strict=False):
            (marker,) = axes.lines
            np.testing.assert_array_equal(marker.get_xydata(), [position])
            assert marker.get_markerfacecolor() == "none"
        assert not row[3].lines
    titles = [axes.get_title() for axes in panels[0]]
    assert titles == ["(0, 2)", "(4, 0)", "(1.25, 1)", "(3, \u2013)"]
    assert [axes.get_ylabel() for axes in panels[:, 0]] == ["truth", "model"]
    assert figure.get_suptitle() == "OOD"
    assert get_legend(figure) == ["held-out region", "true position"]


def test_samples_without_position_or_region(images: np.ndarray) -> None:
    figure = draw_rows(make_rows(images[..., None], images[..., None]))
    assert not figure.legends
    for axes in figure.axes:
        assert not axes.lines and not axes.collections
        assert axes.get_title() == ""


def test_samples_of_a_diverged_model_are_no_shade_of_grey(
    images: np.ndarray,
) -> None:
    figure = draw_rows(make_rows(images, images * np.nan))
    image = figure.axes[-1].images[0]
    assert np.ptp(image.to_rgba(image.get_array())[0, 0, :3]) > 0.1
    assert get_legend(figure) == ["no finite value"]


@pytest.mark.parametrize("num_samples", [1, 3, 8])
def test_text_of_samples_is_apart(num_samples: int) -> None:
    images = np.zeros((num_samples, 28, 28))
    positions = np.full((num_samples, 2), 27.25)
    mask = np.ones((28, 28), bool)
    title = "Out of distribution, epoch 12, run donut_depth4_bump_seed3"
    assert_text_is_apart(
        draw_rows(make_rows(images, images), positions, mask, title=title)
    )


def test_png_and_array_have_the_same_pixels(values: np.ndarray) -> None:
    figure = draw_map(values)
    width, height = figure.get_size_inches()
    png = figure_to_png(figure)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    array = figure_to_array(figure)
    assert array.dtype == np.uint8
    assert array.shape == (int(height * 100), int(width * 100), 4)
    np.testing.assert_array_equal(
        array, np.asarray(Image.open(io.BytesIO(png)))
    )


def test_palette_makes_a_smaller_file_that_looks_the_same() -> None:
    figure = Figure()
    axes = figure.add_subplot()
    for slope in range(8):
        axes.plot([0, 1], [0, slope], label=f"line {slope}")
    axes.legend()
    full = figure_to_png(figure)
    small = figure_to_png(figure, num_colors=256)
    assert len(small) < 0.6 * len(full)
    before, after = (
        np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), float)
        for png in (full, small)
    )
    assert np.abs(before - after).max() < 20  # of 255
    assert np.abs(before - after).mean() < 2


def test_rendering_leaves_the_figure_as_it_was() -> None:
    figure = draw_map(np.eye(3))
    figure.dpi = 60
    before = figure.dpi, figure.canvas, tuple(figure.get_size_inches())
    first = figure_to_array(figure)
    figure_to_png(figure)
    assert figure_to_pdf(figure) == figure_to_pdf(figure)
    assert before == (
        figure.dpi,
        figure.canvas,
        tuple(figure.get_size_inches()),
    )
    np.testing.assert_array_equal(first, figure_to_array(figure))


def test_figures_never_import_pyplot() -> None:
    code = (
        "import sys, numpy, tfcomp.figures as f;"
        "f.figure_to_png(f.draw_gram_matrices({'a': numpy.eye(3)}, 2));"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
