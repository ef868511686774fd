"""Figures of the tables of many runs, beside slow means and intervals."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import tfcomp

VALUES = np.random.default_rng(0).uniform(0.1, 1.0, (6, 4))
ERRORS, OWN, *_ = VALUES.T
COLUMNS = ["run", "when", "subset", "stage", "name", "value"]
RUNS = pd.DataFrame(
    {
        "run": list("abcdef"),
        "seed": [0, 1, 2, 0, 1, 2],
        "depth": [2, 2, 2, 3, 3, 3],
        "name": "a run",
        "width": 8,
    }
)


@pytest.fixture
def numbers() -> pd.DataFrame:
    rows = []
    for run, (error, own, code, image) in zip("abcdef", VALUES, strict=True):
        rows += [
            (run, "start", "ood", "", "mse", 9.0),
            (run, "end", "id", "", "mse", 9.0),
            (run, "end", "ood", "", "mse", error),
            (run, "end", "all", "", "own", own),
            (run, "end", "all", "code", "own", code),
            (run, "end", "all", "image", "own", image),
            (run, "epoch 2", "all", "", "own", 2 * own),
            (run, "epoch 10", "all", "", "own", 10 * own),
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def find_interval(values: np.ndarray) -> list[float]:
    """The mean, and the ends of its interval by Student's distribution."""
    mean = values.mean()
    low, high = stats.t.interval(
        0.95,
        df=len(values) - 1,
        loc=mean,
        scale=stats.sem(values),
    )
    return [mean, low, high]


def test_scores_have_means_and_intervals_over_seeds(numbers):
    names = ["ood/mse", "own"]

    plot = tfcomp.plot_scores(
        RUNS,
        numbers,
        names,
        width=3.0,
    )

    assert plot.get_figwidth() == 3.0
    marks = plot.data.set_index(["panel", "row", "mark"]).sort_index()
    for row, seeds in {
        "depth 2": slice(3),
        "depth 3": slice(3, 6),
    }.items():
        points = marks.loc[("ood/mse", row, "seed"), "value"]
        (mse,) = marks.loc[[("ood/mse", row, "mean")]].to_numpy()
        (own,) = marks.loc[[("own", row, "mean")]].to_numpy()
        assert_array_equal(points, ERRORS[seeds])
        assert_allclose(mse, np.exp(find_interval(np.log(ERRORS[seeds]))))
        assert_allclose(own, find_interval(OWN[seeds]))


def test_settings_are_in_the_order_of_their_numbers(numbers):
    runs = RUNS.replace(
        {
            "depth": {
                2: 10,
                3: 2,
            }
        }
    )

    figure = tfcomp.plot_scores(runs, numbers, "own")

    assert list(figure.data["row"].unique()) == ["depth 2", "depth 10"]


def test_a_row_of_two_depths_has_the_stages_of_the_deeper_one(numbers):
    is_code = (numbers["run"] == "f") & (numbers["stage"] == "code")
    deeper = numbers[is_code].assign(stage="stage_0")
    numbers = pd.concat([numbers[:-3], deeper, numbers[-3:]])  # image, epochs

    plot = tfcomp.plot_curves(
        RUNS,
        numbers,
        "own",
        by="width",
    )

    assert plot.data["stage"].tolist() == ["code", "stage_0", "image"]


def test_a_line_over_epochs(numbers):
    plot = tfcomp.plot_curves(
        RUNS,
        numbers,
        "own",
        over="epoch",
        by="depth",
    )

    assert plot.data["x"].tolist() == [2, 10, 2, 10]
    assert plot.data["mean"].iloc[3] == pytest.approx(10 * OWN[3:].mean())


def test_a_seed_that_lacks_its_number_leaves_no_mean(numbers):
    is_lost = (numbers["run"] == "a") & (numbers["when"] == "end")
    numbers["value"] = numbers["value"].mask(is_lost)

    marks = tfcomp.plot_scores(RUNS, numbers, "ood/mse").data
    lines = tfcomp.plot_curves(RUNS, numbers, "own").data
    together = tfcomp.plot_scores(
        RUNS,
        numbers,
        "own",
        by="width",
    ).data

    marks = marks[marks["row"] == "depth 2"].set_index("mark")["value"]
    assert_array_equal(marks["seed"], ERRORS[1:3])
    assert np.isnan(marks["mean"])
    is_deep = lines["line"] == "depth 3"
    assert_array_equal(lines["mean"].notna(), is_deep)
    # One of two settings that make a seed of a row is missed as well.
    assert np.isnan(together["value"].iloc[-1])


def test_looks_are_those_of_matplotlib(numbers, tmp_path):
    style = {
        "axes.prop_cycle": matplotlib.cycler(color=["r", "b"]),
        "lines.linewidth": 3.0,
        "text.usetex": True,
    }

    with matplotlib.rc_context(style):
        plot = tfcomp.plot_curves(RUNS, numbers, "own")
        plot.savefig(tmp_path / "plot.png")

    lines = plot.axes[0].lines[:2]  # then those of seeds
    assert [line.get_color() for line in lines] == ["r", "b"]
    assert lines[0].get_linewidth() == 3.0
    # No text goes through LaTeX.
    assert not any(text.get_usetex() for text in plot.findobj(Text))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "dept"}, "did you mean depth"),
        ({"names": "ood/msse"}, "did you mean mse"),
        ({"names": "id/own"}, "must be a number of the runs"),
        (
            {
                "names": "own",
                "width": "a4",
            },
            "column, page",
        ),
    ],
)
def test_mistakes(numbers, options, words):
    with pytest.raises(tfcomp.ConfigError, match=words):
        tfcomp.plot_scores(
            RUNS,
            numbers,
            **options,
        )
