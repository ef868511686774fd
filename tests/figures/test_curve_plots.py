"""Curves: numbers, gaps, scales, bands, panels, the held-out interval."""

import numpy as np

from tests.figures.looks import get_legend
from tfcomp.figures.curve_plots import BandCurve, draw_curve_panels, draw_curves
from tfcomp.figures.exhibits import figure_to_png

X = np.array([1.0, 10.0, 100.0])
LABELS = {"xlabel": "number of bumps", "ylabel": "MSE"}


def test_numbers_gaps_and_labels() -> None:
    series = {"a": [3, 2, 1], "b": [np.nan, np.inf, 5]}
    figure = draw_curves(X, series, title="Few bumps", **LABELS)
    (axes,) = figure.axes
    first, second = axes.lines
    np.testing.assert_array_equal(first.get_xydata(), np.c_[X, [3, 2, 1]])
    np.testing.assert_array_equal(second.get_ydata(), [np.nan, np.nan, 5])
    assert axes.get_xlabel() == "number of bumps"
    assert axes.get_ylabel() == "MSE"
    assert figure.get_suptitle() == "Few bumps"
    assert get_legend(figure) == ["a", "b"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")


def test_logarithmic_scale() -> None:
    series = {"a": [1, 0, 0.01], "b": [-1, np.nan, 0]}
    bands = {"a": ([0.5, 0, 0], [2, 1, 1])}
    figure = draw_curves(X, series, logy=True, bands=bands, **LABELS)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1, np.nan, 0.01])
    assert np.isnan(axes.lines[1].get_ydata()).all()
    assert figure_to_png(figure)


def test_bands_and_held_out_interval() -> None:
    figure = draw_curves(
        X,
        {"a": [3, 2, 1], "b": [0, 0, 0]},
        shaded=(5.5, 22.5),
        bands={"a": ([2, 1, 0], [4, 3, 2])},
        **LABELS,
    )
    (axes,) = figure.axes
    (band,) = axes.collections
    corners = {tuple(p) for path in band.get_paths() for p in path.vertices}
    expected = {(x, y) for x, y in zip(X, (2, 1, 0), strict=True)}
    assert corners == expected | {(1, 4), (10, 3), (100, 2)}
    (span,) = axes.patches
    assert (span.get_x(), span.get_x() + span.get_width()) == (5.5, 22.5)
    assert get_legend(figure) == ["a", "b", "held-out region"]


def test_curves_with_bands_in_panels() -> None:
    a = BandCurve([1, 2, 3], [3.0, 2.0, 1.0], [2, 1, 0.5], [4, 3, 1.5])
    b = BandCurve([1, 2], [5.0, 4.0], [4, 3], [6, 5])
    figure = draw_curve_panels(
        {"loss": {"a": a, "b": b}, "error": {"b": b}},
        xlabel="epoch",
        title="a sweep",
    )
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["loss", "error"]
    assert [line.get_label() for line in first.lines] == ["a", "b"]
    np.testing.assert_array_equal(first.lines[0].get_ydata(), [3, 2, 1])
    np.testing.assert_array_equal(first.lines[1].get_xdata(), [1, 2])
    assert len(first.collections) == 2
    # One name, one look, in all panels.
    assert second.lines[0].get_color() == first.lines[1].get_color()
    assert second.lines[0].get_color() != first.lines[0].get_color()
    assert get_legend(figure) == ["a", "b"]
    assert figure.get_suptitle() == "a sweep"


def test_a_logarithmic_panel_shows_the_curve() -> None:
    """An interval that reaches below 0 reaches the bottom of the axes."""
    curve = BandCurve([1, 2], [0.1, 0.01], [-0.5, 0.005], [0.7, 0.015])
    panels = {"loss": {"a": curve}}
    (axes,) = draw_curve_panels(panels, xlabel="epoch", log=["loss"]).axes
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert 0.001 < low < 0.01 and 0.1 < high < 1
    (band,) = axes.collections
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.min() < low and (edges > 0).all()
