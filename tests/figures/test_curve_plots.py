"""Curves, lines over stages, and estimates over seeds."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from tests.figures.looks import get_legend
from tfcomp.figures import curve_plots, estimate_plots

X = np.array([1.0, 10.0, 100.0])
LABELS = {"xlabel": "number of bumps", "ylabel": "MSE"}
SHALLOW = ["code", "stage_0", "image"]
DEEP = ["code", "stage_0", "stage_1", "stage_2", "image"]


def get_lines(axes: Axes) -> dict[str, tuple[list, list]]:
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes.lines
    }


def make_band(places: list, *columns: list) -> pd.DataFrame:
    names = ["mean", "low", "high"][: len(columns)]
    return pd.DataFrame(dict(zip(names, columns, strict=True)), places)


def test_gaps_and_held_out_interval() -> None:
    figure = curve_plots.draw_curves(
        pd.DataFrame({"a": [3, 2, 1], "b": [None, np.inf, 5]}, X),
        title="Few bumps",
        shaded=(5.5, 22.5),
        **LABELS,
    )
    (axes,) = figure.axes
    first, second = axes.lines
    np.testing.assert_array_equal(first.get_xydata(), np.c_[X, [3, 2, 1]])
    np.testing.assert_array_equal(second.get_ydata(), [np.nan, np.nan, 5])
    assert (axes.get_xlabel(), axes.get_ylabel()) == (*LABELS.values(),)
    assert figure.get_suptitle() == "Few bumps"
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    (span,) = axes.patches
    assert (span.get_x(), span.get_x() + span.get_width()) == (5.5, 22.5)
    assert get_legend(figure) == ["a", "b", "held-out region"]
    # Numbers below 0 have no logarithm; steps of a grid are whole.
    (axes,) = curve_plots.draw_curves(
        pd.DataFrame({"a": [1, 0, 0.01]}), logy=True, **LABELS
    ).axes
    assert axes.get_yscale() == "log"
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1, np.nan, 0.01])
    ticks = axes.get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


def test_curves_with_bands_in_panels() -> None:
    a = make_band([1, 2, 3], [3.0, 2.0, 1.0], [2, 1, 0.5], [4, 3, 1.5])
    b = make_band([1, 2], [5.0, 4.0], [4, 3], [6, 5])
    curves = {("loss", "a"): a, ("loss", "b"): b, ("error", "b"): b}
    figure = curve_plots.draw_curve_panels(
        curve_plots.join_curves(curves), xlabel="epoch"
    )
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["loss", "error"]
    assert get_lines(first) == {
        "a": ([1, 2, 3], [3, 2, 1]),
        "b": ([1, 2], [5, 4]),
    }
    band, _ = first.collections
    corners = {tuple(p) for path in band.get_paths() for p in path.vertices}
    assert corners == {(1, 2), (2, 1), (3, 0.5), (1, 4), (2, 3), (3, 1.5)}
    # One name, one look, in all panels.
    assert second.lines[0].get_color() == first.lines[1].get_color()
    assert second.lines[0].get_color() != first.lines[0].get_color()
    assert get_legend(figure) == ["a", "b"]
    (row,) = figure.data.query("panel == 'loss' and line == 'b' and x == 2").T
    assert figure.data.loc[row, ["mean", "low", "high"]].tolist() == [4, 3, 5]


def test_a_shorter_line_of_stages_ends_at_the_image_too() -> None:
    curves = {
        ("", "depth 0"): make_band(SHALLOW, [0.5, None, 0.9]),
        ("", "depth 2"): make_band(DEEP, [0.5, 0.6, 0.7, 0.8, 1]),
    }
    points = curve_plots.join_curves(curves, "stage")
    figure = curve_plots.draw_stage_panels(
        points, ylabel="MSE", limits=(0.5, 1.0)
    )
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == DEEP
    lines = get_lines(axes)
    assert lines["depth 0"][0] == [0, 1, 4]
    np.testing.assert_array_equal(lines["depth 0"][1], [0.5, np.nan, 0.9])
    assert lines["depth 2"] == ([0, 1, 2, 3, 4], [0.5, 0.6, 0.7, 0.8, 1])
    assert axes.get_ylabel() == "MSE"
    assert get_legend(figure) == ["depth 0", "depth 2"]
    assert not axes.collections
    # The whole range of the numbers: a fall from 1 to 0.95 is none.
    low, high = axes.get_ylim()
    assert low == pytest.approx(0.485) and high == pytest.approx(1.015)
    assert list(figure.data) == ["panel", "line", "stage", "mean"]
    shown = figure.data.set_index(["line", "stage"])["mean"]
    assert shown["depth 2"].to_dict()["stage_2"] == 0.8


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([SHALLOW, DEEP], DEEP),
        ([["a", "b"], ["c", "b"], ["b", "d"]], ["a", "c", "b", "d"]),
        ([["a", "b", "c"], ["b", "a", "c"]], ["b", "a", "b", "c"]),
        ([], []),
    ],
)
def test_merged_order_agrees_with_all(lists: list, expected: list) -> None:
    assert curve_plots.merge_stages(lists) == expected
    for stages in lists:
        places = curve_plots.find_places(stages, expected)
        assert places == sorted(set(places))
        assert [expected[place] for place in places] == stages


def test_panels_share_their_rows() -> None:
    single = "single", [0.3], 0.3, (None, None)
    marks = estimate_plots.list_marks(
        "OOD (px)", "first", [0.7, 0.8, 0.9], 0.8, (0.55, 1.05)
    )
    marks += estimate_plots.list_marks("OOD (px)", *single)
    marks += estimate_plots.list_marks("ID", *single)
    figure = estimate_plots.draw_forest(marks, log=["OOD (px)"])
    counts = figure.data.groupby(["panel", "mark"]).size()
    assert counts.tolist() == [1, 1, 2, 4]
    first, second = figure.axes
    lines = [line.get_xdata() for line in first.get_lines()]
    assert any(np.array_equal(x, (0.7, 0.8, 0.9)) for x in lines)
    assert any(np.array_equal(x, (0.55, 1.05)) for x in lines)
    assert sum(np.array_equal(x, (0.8,)) for x in lines) == 1
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ["first", "single"]
    assert first.get_xlabel() == "OOD (px)"
    assert get_legend(figure) == ["a seed", "mean"]
    assert first.yaxis_inverted()
    assert (first.get_xscale(), second.get_xscale()) == ("log", "linear")
    # The lack of the first row does not move the second one.
    seeds, mean = second.lines  # one seed: no interval
    assert set(seeds.get_ydata()) <= {1 - 0.14}
    assert set(mean.get_ydata()) == {1}
