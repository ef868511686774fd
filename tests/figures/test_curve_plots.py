"""Curves, lines over stages, and forests of scores over seeds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from tests.figures.looks import check_axes, get_legend, get_titles
from tfcomp.figures import curve_plots

SHALLOW = ["code", "stage_0", "image"]
DEEP = ["code", "stage_0", "stage_1", "stage_2", "image"]


def test_curves_have_gaps_and_a_held_out_interval():
    table = pd.DataFrame(
        {
            "a": [3, 2, 1],
            "b": [None, np.inf, 5],
        },
        index=[1.0, 10.0, 100.0],
    )

    figure = curve_plots.draw_curves(
        table,
        xlabel="bumps",
        ylabel="MSE",
        shaded=(5.5, 22.5),
    )

    (axes,) = figure.axes
    first, second = axes.lines
    assert_array_equal(first.get_xydata(), [[1, 3], [10, 2], [100, 1]])
    assert_array_equal(second.get_ydata(), [np.nan, np.nan, 5])
    check_axes(
        axes,
        xlabel="bumps",
        ylabel="MSE",
    )
    (span,) = axes.patches
    assert span.get_x() == 5.5
    assert span.get_width() == 17
    assert get_legend(figure) == ["a", "b", "held-out region"]


@pytest.mark.parametrize("lowest, start", [(0.97, 0.0), (-0.5, None)])
def test_errors_begin_at_0(lowest, start):
    table = pd.DataFrame({"a": [lowest, 0.982]})

    figure = curve_plots.draw_curves(
        table,
        xlabel="x",
        ylabel="y",
    )

    bottom, top = figure.axes[0].get_ylim()
    assert bottom == start or (start is None and bottom < lowest)
    assert top > 0.982


def test_numbers_up_to_0_have_no_logarithm():
    curves = {("loss", "a"): pd.DataFrame([[1, 0, 0.0001]])}

    figure = curve_plots.draw_curve_panels(
        curves,
        xlabel="x",
        log=["loss"],
    )

    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert_array_equal(axes.lines[0].get_ydata(), [1, np.nan, 0.0001])
    assert (axes.get_xticks() % 1 == 0).all()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert {"10⁻⁴", "0.001", "1"} <= set(labels)


def test_wide_intervals_are_cut_and_seeds_are_lines():
    seeds = pd.DataFrame(
        {
            "code": [0.9, 1.1],
            "image": [-9.0, 9.0],
        }
    )

    figure = curve_plots.draw_stage_panels({("", "all"): seeds}, ylabel="R²")

    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert -0.5 < low < 0
    assert 1 < high < 1.5
    lines = [line.get_ydata().tolist() for line in axes.lines]
    assert lines == [[1, 0], [0.9, -9], [1.1, 9]]
    assert list(figure.data["mean"]) == [1, 0]


def test_layers_of_other_models_keep_their_names():
    layers = ["conv_1", "logits"]
    curves = {("", "all"): pd.DataFrame([[1.0, 0.0]], columns=layers)}

    figure = curve_plots.draw_stage_panels(curves, ylabel="R²")

    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == layers
    assert axes.get_xlabel() == ""


def test_curves_with_bands_in_panels():
    single = pd.DataFrame([[3, 2, 1]], columns=[1, 2, 3])
    double = pd.DataFrame([[4.9, 3.9], [5.1, 4.1]], columns=[1, 2])
    curves = {
        ("loss", "a"): single,
        ("loss", "b"): double,
        ("error", "b"): double,
    }

    figure = curve_plots.draw_curve_panels(curves, xlabel="epoch")

    loss, error = figure.axes
    assert get_titles(figure) == ["loss", "error"]
    first, second = loss.lines[:2]  # then those of seeds
    again = error.lines[0]
    assert len(loss.lines) == len(error.lines) + 1 == 4  # with two seeds of b
    assert_array_equal(first.get_xydata(), [[1, 3], [2, 2], [3, 1]])
    assert_allclose(second.get_xydata(), [[1, 5], [2, 4]])
    assert_array_equal(again.get_xydata(), second.get_xydata())
    (polygon,) = error.collections
    (band,) = polygon.get_paths()
    x, y = np.unique(band.vertices.round(9), axis=0).T
    half = 0.1 * stats.t.ppf(0.975, df=1)
    assert_array_equal(x, [1, 1, 2, 2])
    assert_allclose(y, [5 - half, 5 + half, 4 - half, 4 + half])
    # A line has one color in all panels.
    assert again.get_color() == second.get_color()
    assert second.get_color() != first.get_color()
    assert get_legend(figure) == ["a", "b"]


def test_a_shorter_line_of_stages_ends_at_the_image_too():
    curves = {
        ("", "depth 0"): pd.DataFrame([[0.5, np.nan, 0.9]], columns=SHALLOW),
        ("", "depth 2"): pd.DataFrame([[0.5, 0.6, 0.7, 0.8, 1]], columns=DEEP),
    }

    figure = curve_plots.draw_stage_panels(
        curves,
        ylabel="MSE",
        ylim=(0.5, 1.0),
    )

    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["code", "0", "1", "2", "image"]
    assert axes.get_xlabel() == "stage"
    shallow, deep = axes.lines
    assert_array_equal(shallow.get_xydata(), [[0, 0.5], [1, np.nan], [4, 0.9]])
    assert_array_equal(deep.get_xdata(), range(5))
    low, high = axes.get_ylim()
    assert low < 0.5
    assert high > 1.0
    assert list(figure.data) == ["panel", "line", "stage", "mean"]


@pytest.mark.parametrize(
    "lists, expected",
    [
        ([SHALLOW, DEEP], DEEP),
        ([["a", "b"], ["c", "b"], ["b", "d"]], ["a", "c", "b", "d"]),
        ([], []),
    ],
)
def test_merged_order_agrees_with_all(lists, expected):
    assert curve_plots.merge_stages(lists) == expected


def test_forests_have_seeds_means_and_intervals():
    marks = curve_plots.list_marks(
        "OOD",
        "first",
        [0.7, 0.9],
        0.8,
        0.55,
        1.05,
    )
    for panel in ("OOD", "ID"):
        marks += curve_plots.list_marks(
            panel,
            "single",
            [0.3],
            0.3,
        )

    figure = curve_plots.draw_forest(marks, log=["OOD"])

    ood, only_single = figure.axes
    places = [line.get_xdata().tolist() for line in ood.lines]
    assert places == [[0.7, 0.9], [0.55, 1.05], [0.8], [0.3], [0.3]]
    labels = [label.get_text() for label in ood.get_yticklabels()]
    assert labels == ["first", "single"]
    assert ood.yaxis_inverted()
    assert ood.get_xscale() == "log"
    assert only_single.get_xscale() == "linear"
    assert get_legend(figure) == ["a seed", "mean"]
    # The second row keeps its place where the first one is missing.
    _, mean = only_single.lines
    assert_array_equal(mean.get_ydata(), 1)
