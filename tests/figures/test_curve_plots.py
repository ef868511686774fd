"""Curves, lines over stages, and forests of scores over seeds."""

import numpy as np
import pandas as pd
import pytest

from tests.figures.looks import get_legend
from tfcomp.figures import curve_plots

X = np.array([1.0, 10.0, 100.0])
SHALLOW = ["code", "stage_0", "image"]
DEEP = ["code", "stage_0", "stage_1", "stage_2", "image"]


def make_line(places: list, mean: list, *ends: list) -> pd.DataFrame:
    columns = dict(zip(["low", "high"], ends, strict=False))
    return pd.DataFrame({"mean": mean, **columns}, places)


def test_curves_with_gaps_and_a_held_out_interval() -> None:
    table = pd.DataFrame({"a": [3, 2, 1], "b": [None, np.inf, 5]}, X)
    figure = curve_plots.draw_curves(
        table, xlabel="bumps", ylabel="MSE", shaded=(5.5, 22.5)
    )
    (axes,) = figure.axes
    first, second = axes.lines
    np.testing.assert_array_equal(first.get_xydata(), np.c_[X, [3, 2, 1]])
    np.testing.assert_array_equal(second.get_ydata(), [np.nan, np.nan, 5])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("bumps", "MSE")
    (span,) = axes.patches
    assert (span.get_x(), span.get_width()) == (5.5, 17)
    assert get_legend(figure) == ["a", "b", "held-out region"]


def test_numbers_up_to_0_have_no_logarithm() -> None:
    figure = curve_plots.draw_curves(
        pd.DataFrame({"a": [1, 0, 0.01]}), xlabel="x", ylabel="y", logy=True
    )
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1, np.nan, 0.01])
    assert (axes.get_xticks() % 1 == 0).all()  # steps of a grid are whole


def test_curves_with_bands_in_panels() -> None:
    a = make_line([1, 2, 3], [3.0, 2.0, 1.0], [2, 1, 0.5], [4, 3, 1.5])
    b = make_line([1, 2], [5.0, 4.0], [4, 3], [6, 5])
    curves = {("loss", "a"): a, ("loss", "b"): b, ("error", "b"): b}
    figure = curve_plots.draw_curve_panels(
        curve_plots.join_curves(curves), xlabel="epoch"
    )
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["loss", "error"]
    points = [line.get_xydata().tolist() for line in first.lines]
    assert points == [[[1, 3], [2, 2], [3, 1]], [[1, 5], [2, 4]]]
    band, _ = first.collections
    (path,) = band.get_paths()
    corners = {(float(x), float(y)) for x, y in path.vertices}
    assert corners == {(1, 2), (2, 1), (3, 0.5), (1, 4), (2, 3), (3, 1.5)}
    # One name, one look, in all panels.
    colors = [line.get_color() for line in first.lines]
    assert second.lines[0].get_color() == colors[1] != colors[0]
    assert get_legend(figure) == ["a", "b"]


def test_a_shorter_line_of_stages_ends_at_the_image_too() -> None:
    curves = {
        ("", "depth 0"): make_line(SHALLOW, [0.5, None, 0.9]),
        ("", "depth 2"): make_line(DEEP, [0.5, 0.6, 0.7, 0.8, 1]),
    }
    points = curve_plots.join_curves(curves, "stage")
    figure = curve_plots.draw_stage_panels(
        points, ylabel="MSE", limits=(0.5, 1.0)
    )
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == DEEP
    first, second = axes.lines
    np.testing.assert_array_equal(
        first.get_xydata(), [[0, 0.5], [1, np.nan], [4, 0.9]]
    )
    assert second.get_xdata().tolist() == [0, 1, 2, 3, 4]
    # The whole range of the numbers: a fall from 1 to 0.95 is none.
    low, high = axes.get_ylim()
    assert low < 0.5 and high > 1.0
    assert list(figure.data) == ["panel", "line", "stage", "mean"]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([SHALLOW, DEEP], DEEP),
        ([["a", "b"], ["c", "b"], ["b", "d"]], ["a", "c", "b", "d"]),
        ([], []),
    ],
)
def test_merged_order_agrees_with_all(lists: list, expected: list) -> None:
    assert curve_plots.merge_stages(lists) == expected


def test_forests_have_seeds_means_and_intervals() -> None:
    marks = curve_plots.list_marks(
        "OOD", "first", [0.7, 0.8, 0.9], 0.8, (0.55, 1.05)
    )
    for panel in ("OOD", "ID"):
        marks += curve_plots.list_marks(
            panel, "single", [0.3], 0.3, (None, None)
        )
    figure = curve_plots.draw_forest(marks, log=["OOD"])
    counts = figure.data.groupby(["panel", "mark"]).size()
    assert counts.tolist() == [1, 1, 2, 4]
    first, second = figure.axes
    places = [line.get_xdata().tolist() for line in first.lines]
    assert places == [[0.7, 0.8, 0.9], [0.55, 1.05], [0.8], [0.3], [0.3]]
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ["first", "single"]
    assert first.get_xlabel() == "OOD"
    assert first.yaxis_inverted()
    assert (first.get_xscale(), second.get_xscale()) == ("log", "linear")
    assert get_legend(figure) == ["a seed", "mean"]
    # The lack of the first row does not move the second one.
    seeds, mean = second.lines  # one seed: no interval
    assert set(mean.get_ydata()) == {1}
