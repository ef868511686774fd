"""Lines over stages: numbers, gaps, places of stages, labels."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.figures.looks import get_legend
from tfcomp.figures.curve_plots import draw_stage_panels, merge_stages

SHALLOW = ["code", "stage_0", "image"]
DEEP = ["code", "stage_0", "stage_1", "stage_2", "image"]


def draw_lines(series: dict, stages: list | dict, **options: object) -> Figure:
    if isinstance(stages, list):
        stages = dict.fromkeys(series, stages)
    return draw_stage_panels({"": series}, stages, ylabel="MSE", **options)


def get_lines(axes: Axes) -> dict[str, tuple[list, list]]:
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes.lines
    }


def get_places(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def test_numbers_gaps_and_labels() -> None:
    series = {"ID": [0.5, 0.75, 1], "OOD": [None, np.inf, 0.25]}
    figure = draw_lines(series, SHALLOW, title="Probes")
    (axes,) = figure.axes
    lines = get_lines(axes)
    assert lines["ID"] == ([0, 1, 2], [0.5, 0.75, 1])
    np.testing.assert_array_equal(lines["OOD"][1], [np.nan, np.nan, 0.25])
    assert get_places(axes) == SHALLOW
    assert axes.get_ylabel() == "MSE"
    assert figure.get_suptitle() == "Probes"
    assert get_legend(figure) == ["ID", "OOD"]
    assert not axes.collections


def test_shorter_line_ends_at_the_image_too() -> None:
    figure = draw_lines(
        {"depth 0": [1, 2, 3], "depth 2": [5, 6, 7, 8, 9]},
        {"depth 0": SHALLOW, "depth 2": DEEP},
    )
    (axes,) = figure.axes
    assert get_places(axes) == DEEP
    assert get_lines(axes) == {
        "depth 0": ([0, 1, 4], [1, 2, 3]),
        "depth 2": ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9]),
    }


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([SHALLOW, DEEP], DEEP),
        ([["a", "b"], ["c", "b"], ["b", "d"]], ["a", "c", "b", "d"]),
        ([["a", "b"], ["c"]], ["a", "b", "c"]),
        ([["b", "c", "d"], ["a", "c"], []], ["b", "a", "c", "d"]),
        ([], []),
    ],
)
def test_merged_order_agrees_with_all(lists: list, expected: list) -> None:
    assert merge_stages(lists) == expected
    for stages in lists:
        places = [expected.index(stage) for stage in stages]
        assert places == sorted(places)


@pytest.mark.parametrize("lists", [[["a", "b"], ["b", "a"]], [["a", "a"]]])
def test_orders_that_disagree(lists: list) -> None:
    with pytest.raises(ValueError, match="in the same order for all lines"):
        merge_stages(lists)


def test_an_axis_may_have_the_whole_range() -> None:
    """A fall from 1 to 0.95 is none, if numbers can be 0.5."""
    figure = draw_stage_panels(
        {"": {"a": [1.0, 0.95]}},
        {"a": ["code", "image"]},
        ylabel="factorization",
        limits=(0.5, 1.0),
    )
    low, high = figure.axes[0].get_ylim()
    assert low == pytest.approx(0.485) and high == pytest.approx(1.015)
