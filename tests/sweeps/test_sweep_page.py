"""The page of a sweep, and statistics of its curves, on planted numbers."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from PIL import EpsImagePlugin, Image
from PIL.PngImagePlugin import PngInfo

from tfcomp.config.run_config import RunConfig
from tfcomp.figures.image_files import read_preview, write_preview
from tfcomp.metrics.registry import find_limits
from tfcomp.report.score_table import ScoredRun, describe_fits
from tfcomp.statistics import seed_statistics
from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps.sweep_numbers import SweepNumbers, compute_numbers
from tfcomp.sweeps.sweep_page import draw_lines, make_page
from tfcomp.sweeps.sweep_run import write_page
from tfcomp.training.monitor import History

Planted = dict[int, tuple[list[float], list[float]]]


def plant(numbers: Planted, planned: int = 6) -> SweepNumbers:
    """ID and OOD errors of the seeds of some depths."""
    rows = [
        {"depth": depth, "seed": seed, "score": score, "value": value}
        for depth, errors in numbers.items()
        for score, values in zip(
            ("id_relative_mse", "ood_relative_mse"), errors, strict=True
        )
        for seed, value in enumerate(values)
    ]
    runs = [
        ScoredRun(f"depth {depth}", seed, {"id": known, "ood": held_out})
        for depth, errors in numbers.items()
        for seed, (known, held_out) in enumerate(zip(*errors, strict=True))
    ]
    seeds, flags = pd.DataFrame(rows), ["depth"]
    scores = seed_statistics.summarize(seeds, ["depth", "score"], find_limits)
    paired = seed_statistics.compare_settings(seeds, flags)
    tables = (seeds, scores, pd.DataFrame(), pd.DataFrame(), paired)
    names = [r.setting for r in runs] + ["depth 9"] * (planned - len(runs))
    return SweepNumbers("planted", flags, *tables, names, runs)


def say(numbers: Planted, planned: int = 6) -> list[str]:
    sweep = plant(numbers, planned)
    return [*make_page(sweep, Path())[0].sentences]


KNOWN = [0.01] * 5
# Seeds spread widely, and each is better by as much; their intervals overlap.
SHIFTED = {
    2: (KNOWN, [0.1, 0.3, 0.5, 0.7, 0.9]),
    4: (KNOWN, [0.151, 0.349, 0.552, 0.748, 0.95]),
}
# Two seeds: no intervals that overlap, and no clear test.
APART = {2: (KNOWN[:2], [0.10, 0.11]), 4: (KNOWN[:2], [0.12, 0.16])}


@pytest.mark.parametrize(
    ("errors", "count"), [(SHIFTED, "1 of 1"), (APART, "0 of 1")]
)
def test_top_and_bottom_say_what_the_paired_test_says(
    errors: Planted, count: str
) -> None:
    sweep = plant(errors)
    low, high = (compute_interval(errors[depth][1]) for depth in errors)
    assert low and high and low[1] > high[0]  # unpaired, they overlap
    answer, (*_, section) = make_page(sweep, Path())
    top = answer.sentences[1]
    assert top == section.finding
    assert f"differs in {count} pairs" in top
    assert "depth 4 less depth 2 is 0.05 [" in top or count == "0 of 1"


def test_settings_that_do_not_fit_are_not_the_best() -> None:
    errors = {2: ([0.01] * 3, [0.5] * 3), 4: ([0.2] * 3, [0.4] * 3)}
    first, *_, last = say(errors, 9)
    assert first.startswith("1 of 3 settings fit")
    assert first.endswith("of these is 0.5 (depth 2).")
    assert last == "6 of 9 trials have scores."
    assert "no test of generalization" in say({4: errors[4]})[0]
    alone = say({2: errors[2]}, 3)[0]  # the best of one is no finding
    assert "0.5" in alone and "1 of 1" not in alone and "lowest" not in alone


def test_a_setting_with_a_diverged_seed_is_counted() -> None:
    good, bad = {"id": 0.01, "ood": 0.5}, {"id": None, "ood": None}
    runs = [ScoredRun(f"depth {n}", n, good if n == 2 else bad) for n in (2, 4)]
    assert describe_fits(runs).startswith("1 of 2 settings fit their")
    errors = enumerate((0.1, None))  # the second seed has no OOD error
    runs += [ScoredRun("c", seed, good | {"ood": e}) for seed, e in errors]
    assert "of those that have one is 0.5 (depth 2)" in describe_fits(runs)
    equal = [ScoredRun(name, 0, good) for name in "ab"]
    assert describe_fits(equal).endswith("of these is 0.5 (a; b).")


ERRORS: Planted = {
    d: ([0.01, 0.02, 0.03], [0.1 * d, 0.2 * d, 0.3 * d]) for d in (1, 2, 3)
}


def test_page(tmp_path: Path) -> None:
    sweep = plant(ERRORS, 9)
    pair = np.stack([np.eye(4), np.ones((4, 4))])  # [n, H, W]
    trial = tmp_path / "trials" / "t"
    trial.mkdir(parents=True)
    write_preview(trial, ["OOD 1", "OOD 2"], [pair, pair / 2])
    runs = [dataclasses.replace(run, link="trials/t/") for run in sweep.runs]
    write_page(tmp_path, dataclasses.replace(sweep, runs=runs))
    page = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="figure-scores"' in page and "depth 3" in page
    assert 'href="figures/scores.pdf"' in page and 'href="trials/t/"' in page
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"scores.pdf", "by_depth.png", "by_depth.csv"} <= names
    assert "samples_0.png" in names
    assert page.count('id="section-paired"') == 1


def test_a_preview_of_others_is_no_program(tmp_path: Path, monkeypatch) -> None:
    started = []
    run = lambda *arguments: started.append(arguments)  # noqa: E731
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", run)
    text = '%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%points: ["a"]\n'
    (tmp_path / "preview.png").write_text(text)
    assert read_preview(tmp_path) is None and not started
    info = PngInfo()
    info.add_text("points", '["a"]')  # of two rows, which 5 pixels are not
    Image.new("L", (4, 5)).save(tmp_path / "preview.png", pnginfo=info)
    assert read_preview(tmp_path) is None


@pytest.mark.parametrize(("num_seeds", "bands"), [(2, 0), (3, 1)])
def test_two_seeds_have_no_band(num_seeds: int, bands: int) -> None:
    table = pd.DataFrame(
        {
            "depth": 2,
            "quantity": "probe_r2_ood",
            "stage": range(3),
            "mean": [0.9, 0.8, 0.7],
            "low": [-2.0, -2.0, -2.0],
            "high": [3.0, 3.0, 3.0],
            "sd": 0.1,
            "n": num_seeds,
        }
    )
    names = {"probe_r2_ood": "probe R²"}
    (exhibit,) = draw_lines(plant(ERRORS), table, names, "stage", "layers")
    (axes,) = exhibit.figure.axes
    assert len(axes.collections) == bands
    # A band that is not drawn does not stretch the axis either.
    assert (axes.get_ylim()[1] > 1.5) == bool(bands)
    # The table has it all the same.
    assert np.allclose([row["high"] for row in exhibit.rows], 3.0)


def write_trial(folder: Path, losses: dict[int, float]) -> Any:
    """A finished trial, with a history if it has losses."""
    folder.mkdir(parents=True)
    (folder / "run.flags").write_text("--depth=3\n")
    scores = {"id": {"mse": 1.0}, "ood": {"mse": 1.0}}
    (folder / "metrics.json").write_text(json.dumps(scores))
    for epoch, loss in losses.items():
        History(folder).add(epoch, {"train/loss": loss, "id/mse": 9.0})
    return SimpleNamespace(
        setting={"depth": 3}, seed=0, path=folder, name="t", config=RunConfig()
    )


def summarize_curves(trials: list[Any]) -> pd.DataFrame:
    settings = SimpleNamespace(pairs="first")
    return compute_numbers("s", trials, cast(Any, settings)).curves


def test_rows_of_a_curve(tmp_path: Path) -> None:
    trials = [
        write_trial(tmp_path / str(seed), losses)
        for seed, losses in enumerate([{1: 4.0, 2: 1.0}, {2: 3.0}, {}])
    ]
    found = summarize_curves(trials)
    low, high = compute_interval([1.0, 3.0])
    expected = [
        [3, "train/loss", 1, 4.0, None, None, None, 1],
        [3, "train/loss", 2, 2.0, 2**0.5, low, high, 2],
    ]
    assert found.to_numpy().tolist() == expected
    columns = ["depth", "quantity", "epoch", "mean", "sd", "low", "high", "n"]
    assert list(found.columns) == columns
    # A trial of an older version has no history.
    pd.testing.assert_frame_equal(summarize_curves(trials[:2]), found)
    assert summarize_curves(trials[2:]).empty


def test_a_stage_has_no_mean_where_a_seed_lacks_its_number(tmp_path) -> None:
    trials = [write_trial(tmp_path / name, {}) for name in "ab"]
    for trial, image in zip(trials, (0.5, None), strict=True):
        layers = {"code": None, "stage_0": 0.25, "image": image}
        numbers = {s: {"probe_r2_ood": n} for s, n in layers.items()}
        content = {"id": {"mse": 0.5}, "ood": {}, "layers": numbers}
        if image:  # the other one was not measured
            content["measures"] = {"schmidt": 0.5, "stages": [*layers]}
        (trial.path / "metrics.json").write_text(json.dumps(content))
    settings = cast(Any, SimpleNamespace(pairs="first"))
    numbers = compute_numbers("s", trials, settings)
    assert numbers.layers["stage"].tolist() == [1, 2]
    assert numbers.layers["mean"].tolist() == [0.25, None]
    means = numbers.scores.set_index("score")[["mean", "n"]]
    assert means.loc["id_mse"].tolist() == [0.5, 2]
    assert means.loc["schmidt"].tolist() == [None, 1]


@pytest.mark.parametrize("count", [200, 600])
def test_long_curves_are_thinned(count: int, tmp_path: Path) -> None:
    trial = write_trial(tmp_path / "t", {})
    lines = [f"{epoch},1.0\n" for epoch in range(count)]
    history = "".join(["epoch,train/loss\n", *lines])
    (trial.path / "history.csv").write_text(history)
    chosen = summarize_curves([trial])["epoch"].tolist()
    assert len(chosen) == min(count, 200)
    assert (chosen[0], chosen[-1]) == (0, count - 1)
    if count > 200:
        assert np.diff(chosen).max() <= count / 200 + 1
