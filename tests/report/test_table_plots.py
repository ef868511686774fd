"""Figures of the tables of many runs, beside slow means and intervals."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy import stats

import tfcomp

VALUES = np.random.default_rng(0).uniform(0.1, 1.0, (6, 4))
RUNS = pd.DataFrame(
    {"run": [*"abcdef"], "seed": [0, 1, 2] * 2, "depth": [2] * 3 + [3] * 3}
).assign(name="a run", width=8)


def list_numbers() -> pd.DataFrame:
    rows = []
    for run, (error, own, code, image) in zip("abcdef", VALUES, strict=True):
        rows += [
            (run, "start", "ood", "", "mse", 9.0),
            (run, "end", "id", "", "mse", 9.0),
            (run, "end", "ood", "", "mse", error),
            (run, "end", "all", "", "own", own),
            (run, "end", "all", "code", "own", code),
            (run, "end", "all", "image", "own", image),
            *((run, f"epoch {n}", "all", "", "own", n * own) for n in (2, 10)),
        ]
    columns = ["run", "when", "subset", "stage", "name", "value"]
    return pd.DataFrame(rows, columns=columns)


def place_stages(column: pd.Series) -> pd.Series:
    return column.replace({"code": 1, "stage_0": 2, "image": 3, "": 0})


def find_interval(values: np.ndarray) -> list[float]:
    mean, spread = values.mean(), stats.sem(values)
    return [mean, *stats.t.interval(0.95, len(values) - 1, mean, spread)]


def test_scores_have_means_and_intervals_over_seeds() -> None:
    names = ["ood/mse", "own"]
    plot = tfcomp.plot_scores(RUNS, list_numbers(), names, width=3.0)
    assert plot.get_figwidth() == 3.0
    shown = plot.data.set_index(["panel", "row", "mark"]).sort_index()
    for label, rows in (("depth 2", slice(3)), ("depth 3", slice(3, 6))):
        errors, own = VALUES[rows, 0], VALUES[rows, 1]
        seeds = shown.loc[("ood/mse", label, "seed"), "value"]
        np.testing.assert_array_equal(seeds, errors)
        for name, expected in (
            ("ood/mse", np.exp(find_interval(np.log(errors)))),
            ("own", find_interval(own)),
        ):
            found = shown.loc[[(name, label, "mean")]].to_numpy()[0]
            np.testing.assert_allclose(found, expected)


def test_stages_and_epochs() -> None:
    some = RUNS[RUNS["depth"] == 3]
    plot = tfcomp.plot_curves(some, list_numbers(), "own")
    assert plot.data["stage"].tolist() == ["code", "image"]
    for row, column in zip(plot.data.itertuples(), (2, 3), strict=True):
        expected = find_interval(VALUES[3:, column])
        np.testing.assert_allclose([row.mean, row.low, row.high], expected)
    # A row of two depths has the deeper one's stages in their order.
    deeper = list_numbers().query("run == 'f' and stage == 'code'")
    numbers = pd.concat([list_numbers(), deeper.assign(stage="stage_0")])
    numbers = numbers.sort_values(["run", "stage"], key=place_stages)
    plot = tfcomp.plot_curves(RUNS, numbers, "own", by="width")
    assert plot.data["stage"].tolist() == ["code", "stage_0", "image"]
    options = {"over": "epoch", "by": "depth"}
    plot = tfcomp.plot_curves(RUNS, list_numbers(), "own", **options)
    assert plot.data["x"].tolist() == [2, 10, 2, 10]
    assert plot.data["mean"].iloc[3] == pytest.approx(10 * VALUES[3:, 1].mean())


def test_a_seed_that_lacks_its_number_leaves_no_mean() -> None:
    numbers = list_numbers()
    is_lost = (numbers["run"] == "a") & (numbers["when"] == "end")
    numbers["value"] = numbers["value"].mask(is_lost)
    marks = tfcomp.plot_scores(RUNS, numbers, "ood/mse").data
    marks = marks[marks["row"] == "depth 2"].set_index("mark")["value"]
    assert marks["seed"].tolist() == VALUES[1:3, 0].tolist()
    assert np.isnan(marks["mean"])
    lines = tfcomp.plot_curves(RUNS, numbers, "own").data.set_index("line")
    assert lines.loc["depth 2", "mean"].isna().all()
    assert lines.loc["depth 3", "mean"].notna().all()
    # One of two settings that make a seed of a row is missed as well.
    plot = tfcomp.plot_scores(RUNS, numbers, "own", by="width")
    assert np.isnan(plot.data["value"].iloc[-1])
    with pytest.raises(tfcomp.ConfigError, match="must be a number"):
        tfcomp.plot_scores(RUNS, numbers.assign(value=np.nan), "own")


def test_looks_are_those_of_matplotlib() -> None:
    style = {"axes.prop_cycle": matplotlib.cycler(color=["r", "b"])}
    with matplotlib.rc_context(style | {"lines.linewidth": 3.0}):
        plot = tfcomp.plot_curves(RUNS, list_numbers(), "own")
    lines = plot.axes[0].lines
    assert [line.get_color() for line in lines] == ["r", "b"]
    assert lines[0].get_linewidth() == 3.0
    assert [*map(str, plot.data["line"].unique())] == ["depth 2", "depth 3"]


def test_no_text_goes_through_latex(tmp_path: Path) -> None:
    with matplotlib.rc_context({"text.usetex": True}):
        plot = tfcomp.plot_curves(RUNS, list_numbers(), "own")
        plot.savefig(tmp_path / "plot.png")
    assert not any(text.get_usetex() for text in plot.findobj(Text))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "dept"}, "did you mean depth"),
        ({"names": "ood/msse"}, "did you mean mse"),
        ({"names": "own", "width": "a4"}, "column, page"),
    ],
)
def test_mistakes(options: dict, words: str) -> None:
    with pytest.raises(tfcomp.ConfigError, match=words):
        tfcomp.plot_scores(RUNS, list_numbers(), **options)
