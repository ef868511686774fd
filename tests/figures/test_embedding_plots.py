"""Embeddings: the right matrices on one symmetric scale, and spectra."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.figures.looks import get_image_axes, get_legend
from tfcomp.datasets.factors import Factor
from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.manifold_plots import (
    draw_embeddings,
    draw_profiles,
    draw_spectrum,
)

FACTOR = Factor("x", 5, 0.0, 300.0, "km", periodic=True)


def draw(matrices: object, **options: object) -> Figure:
    values = options.pop("values", range(len(matrices)))
    return draw_embeddings(matrices, values, factor_label="y (px)", **options)


def get_bar_label(figure: Figure) -> str:
    return get_image_axes(figure)[-1].images[0].colorbar.ax.get_ylabel()


def test_matrices_share_one_symmetric_scale(rng: np.random.Generator) -> None:
    matrices = rng.uniform(-3, 1, (5, 4, 6))
    values = [0, 0.5, 1, 1.5, 20]
    figure = draw(matrices, title="embedding of y", values=values)
    panels = get_image_axes(figure)
    limit = np.abs(matrices).max()
    for axes, matrix in zip(panels, matrices, strict=True):
        image = axes.images[0]
        np.testing.assert_array_equal(image.get_array(), matrix)
        assert image.origin == "lower" and not axes.yaxis_inverted()
        assert image.get_clim() == (-limit, limit)
        white = image.cmap(0.5)[:3]  # of 0
        np.testing.assert_allclose(white, np.ones(3), atol=0.05)
    titles = [axes.get_title() for axes in panels]
    assert titles == ["0", "0.5", "1", "1.5", "20"]
    assert len(figure.axes) == len(panels) + 1  # one color bar
    assert get_bar_label(figure) == "entry"
    assert figure.get_suptitle() == "embedding of y"
    assert figure.get_supxlabel() == "one matrix per value of y (px)"


def test_outlier_does_not_bleach_the_rest(rng: np.random.Generator) -> None:
    matrices = rng.uniform(-1, 1, (4, 20, 20))
    matrices[1, 2, 3] = -100
    figure = draw(matrices)
    panels = get_image_axes(figure)
    image = panels[0].images[0]
    assert panels[-1].images[0].colorbar.extend == "both"
    assert 0.9 < image.get_clim()[1] < 1
    assert "% beyond the scale" in get_bar_label(figure)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_matrix_of_no_finite_value_is_gray(value: float) -> None:
    matrices = np.ones((2, 3, 3))
    matrices[1] = value
    figure = draw(matrices)
    image = get_image_axes(figure)[1].images[0]
    red, green, blue, _ = image.to_rgba(image.get_array())[0, 0]
    assert red == green == blue and 0.3 < red < 0.8
    assert image.get_clim() == (-1, 1)
    assert "gray: no finite value" in figure.get_supxlabel()


def test_spectrum_is_relative_to_the_largest() -> None:
    values = np.array([[4.0, 2.0, 0.4], [1.0, 10.0, 0.0], [1.0, 0.1, 0.01]])
    figure = draw_spectrum(values, [1, 2, 1.5], title="embedding of x")
    (axes,) = figure.axes
    *lines, median = axes.lines
    expected = [[1, 0.5, 0.1], [1, 0.1, 0], [1, 0.1, 0.01]]
    for line, numbers in zip(lines, expected, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
        np.testing.assert_allclose(line.get_ydata(), numbers)
    np.testing.assert_allclose(median.get_ydata(), [1, 0.1, 0.01])
    assert median.get_linewidth() > lines[0].get_linewidth()
    assert axes.get_yscale() == "log" and axes.get_ylim()[0] == 1e-4
    assert axes.get_xlabel() == "index of the singular value"
    assert axes.get_ylabel() == "singular value / largest"
    assert figure.get_suptitle() == "embedding of x"
    assert get_legend(figure) == [
        "one of 3 values",
        "median (mean effective rank 1.5)",
    ]


def test_profiles_share_one_scale_and_name_their_axis() -> None:
    profiles = {"rows": np.full((5, 4), 3.0), "columns": -np.ones((5, 6))}
    figure = draw_profiles(profiles, factor=FACTOR, title="of x")
    panels = get_image_axes(figure)
    assert [axes.get_title() for axes in panels] == ["rows", "columns"]
    for axes, profile in zip(panels, profiles.values(), strict=True):
        image = axes.images[0]
        np.testing.assert_array_equal(image.get_array(), profile)
        assert image.get_clim() == (-3, 3)
        ticks = [t.get_text() for t in axes.yaxis.get_ticklabels()]
        assert ticks == ["0", "60", "120", "180", "240"]
    assert figure_to_png(figure)
