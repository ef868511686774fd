"""Figures of sweeps: what is drawn where."""

from __future__ import annotations

import numpy as np
import pytest

from tfcomp.figures import BandCurve
from tfcomp.figures import Interval
from tfcomp.figures import draw_curve_panels
from tfcomp.figures import draw_intervals
from tfcomp.figures import figure_to_array


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
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert figure.get_suptitle() == "a sweep"


def test_a_logarithmic_panel_shows_the_curve() -> None:
    """An interval that reaches below 0 reaches the bottom of the axes."""
    curve = BandCurve([1, 2], [0.1, 0.01], [-0.5, 0.005], [0.7, 0.015])
    figure = draw_curve_panels(
        {"loss": {"a": curve}}, xlabel="epoch", log=["loss"]
    )
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert 0.001 < low < 0.01 and 0.1 < high < 1
    (band,) = axes.collections
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.min() < low and (edges > 0).all()


def test_a_curve_of_one_seed_has_no_band() -> None:
    curve = BandCurve([1, 2], [1.0, 2.0], [None, None], [None, None])
    figure = draw_curve_panels({"loss": {"a": curve}}, xlabel="epoch")
    (axes,) = figure.axes
    assert not axes.collections
    assert figure_to_array(figure).std() > 0


def test_intervals_of_settings() -> None:
    rows = {
        "2, bump": Interval(0.5, 0.4, 0.6, [0.45, 0.55]),
        "3, bump": Interval(0.7, None, None, [0.7]),
    }
    figure = draw_intervals({"OOD": rows, "ID": rows}, ylabel="depth, code")
    first = figure.axes[0]
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ["2, bump", "3, bump"]
    assert first.yaxis_inverted()
    assert first.get_ylabel() == "depth, code"
    interval, points, mean, *second = first.lines
    np.testing.assert_array_equal(points.get_xdata(), [0.45, 0.55])
    np.testing.assert_array_equal(interval.get_xdata(), [0.4, 0.6])
    np.testing.assert_array_equal(mean.get_xdata(), [0.5])
    assert set(mean.get_ydata()) == {0}
    assert len(second) == 2  # one seed: no interval


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="panels must have at least one curve"):
        draw_curve_panels({"loss": {}}, xlabel="epoch")
    with pytest.raises(ValueError, match="panels must have at least one row"):
        draw_intervals({"loss": {}})
