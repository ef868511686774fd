"""The page of a sweep: a test on planted numbers, figures, its files."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tfcomp.evaluation.kept_outputs import read_preview, write_preview
from tfcomp.evaluation.metrics import find_limits
from tfcomp.report.score_table import ScoredRun
from tfcomp.statistics.seed_statistics import compute_interval, summarize
from tfcomp.statistics.seed_tests import compare_settings
from tfcomp.sweeps.sweep_numbers import SweepNumbers
from tfcomp.sweeps.sweep_page import draw_lines, make_page
from tfcomp.sweeps.sweep_run import write_page

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
    scores = summarize(seeds, ["depth", "score"], find_limits)
    nothing, paired = pd.DataFrame(), compare_settings(seeds, flags)
    tables = (seeds, scores, nothing, nothing, paired)
    return SweepNumbers("planted", flags, *tables, planned, runs)


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


def test_apart_intervals_are_no_test() -> None:
    """Seeds that lie apart, but whose differences within a seed do not."""
    # Three values each, whose 95 % intervals do not touch.
    errors = {
        2: ([0.01] * 3, [0.10, 0.12, 0.14]),
        4: ([0.01] * 3, [0.30, 0.24, 0.18]),
    }
    low, high = (min(errors[4][1]), max(errors[2][1]))
    assert high < low
    assert "differs in 0 of 1 pairs" in say(errors)[1]


def test_the_reference_of_all_pairs_is_named() -> None:
    errors = {
        d: (KNOWN, [d + s * d / 100 for s in range(5)]) for d in (1, 2, 3)
    }
    assert "2 of 2 pairs with depth 1 (paired" in say(errors)[1]


def test_settings_that_do_not_fit_are_not_the_best() -> None:
    errors = {2: ([0.01] * 3, [0.5] * 3), 4: ([0.2] * 3, [0.4] * 3)}
    first, *_, last = say(errors, 9)
    assert (
        first.startswith("1 of 2 settings fit") and "of these, depth 2" in first
    )
    assert last == "6 of 9 trials have scores."
    assert "no test of generalization" in say({4: errors[4]})[0]


def test_numbers_of_a_column_are_aligned() -> None:
    errors = {
        2: ([0.0031, 0.0032, 0.0034], [0.5] * 3),
        4: ([0.2] * 3, [9.4] * 3),
    }
    table = make_page(plant(errors), Path())[0].exhibits[0]
    assert [row["ID"] for row in table.rows] == ["0.0032", "0.2000"]
    assert [row["OOD"] for row in table.rows] == ["0.50", "9.40"]
    assert " to " in table.rows[0]["ID 95 %"]


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


def test_a_preview_is_read_as_it_was_written(tmp_path: Path) -> None:
    images = np.random.default_rng(0).uniform(size=(3, 5, 4, 3))
    write_preview(tmp_path, ["a", "b", "c"], [images, 1 - images])
    found = read_preview(tmp_path)
    assert found is not None and found[0] == ["a", "b", "c"]
    np.testing.assert_allclose(found[1], [images, 1 - images], atol=1 / 255)
    (tmp_path / "preview.png").write_bytes(b"no picture")
    assert read_preview(tmp_path) is None


@pytest.mark.parametrize(("num_seeds", "bands"), [(1, 0), (2, 0), (3, 1)])
def test_two_seeds_have_no_band(num_seeds: int, bands: int) -> None:
    table = pd.DataFrame(
        {
            "depth": 2,
            "quantity": "probe_r2_ood",
            "stage": range(3),
            "mean": [0.9, 0.8, 0.7],
            "low": [-2.0, -2.0, -2.0],
            "high": [3.0, 3.0, 3.0],
            "sd": 0.1 if num_seeds > 1 else None,
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
