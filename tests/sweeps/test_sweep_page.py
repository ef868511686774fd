"""The page of a sweep: its sentences on planted numbers, and its tables."""

from pathlib import Path

import pandas as pd
import pytest

from tfcomp.evaluation.metrics import find_limits
from tfcomp.figures.exhibits import Exhibit
from tfcomp.statistics.seed_statistics import summarize
from tfcomp.sweeps.sweep_exhibits import SweepScores, make_exhibits
from tfcomp.sweeps.sweep_page import (
    describe_lines,
    describe_pairs,
    make_answer,
    make_sections,
)
from tfcomp.sweeps.sweep_reports import write_page

Planted = dict[int, tuple[list[float], list[float]]]


def plant(numbers: Planted) -> SweepScores:
    """ID and OOD errors of the seeds of some depths."""
    rows = [
        {"depth": depth, "seed": seed, "score": score, "value": value}
        for depth, errors in numbers.items()
        for score, values in zip(
            ("id_relative_mse", "ood_relative_mse"), errors, strict=True
        )
        for seed, value in enumerate(values)
    ]
    seeds = pd.DataFrame(rows)
    return SweepScores(
        "planted",
        ["depth"],
        seeds,
        summarize(seeds, ["depth", "score"], find_limits),
        "S",
    )


def say(numbers: Planted, planned: int = 6) -> list[str]:
    return [*make_answer(plant(numbers), [], planned).sentences]


@pytest.mark.parametrize(
    ("best", "said"),
    [
        ([0.10, 0.11, 0.12], "the intervals of the best two do not overlap."),
        ([0.10, 0.50, 0.90], "so that these are not told apart."),
        ([0.10, 0.11], "two seeds or fewer do not tell settings apart."),
    ],
)
def test_which_setting_is_best(best: list[float], said: str) -> None:
    worst = [0.80, 0.82, 0.84][: len(best)]
    known = [0.01] * len(best)
    sentence = say({2: (known, worst), 4: (known, best)})[0]
    mean = sum(best) / len(best)
    assert f"is least for depth 4 ({mean:.3g}) and largest for" in sentence
    assert sentence.endswith(said)


def test_seeds_that_are_all_alike_tell_nothing() -> None:
    errors = {2: ([0.01] * 3, [0.5] * 3), 4: ([0.2] * 3, [0.4] * 3)}
    assert say(errors)[0].endswith("all alike have no interval.")


def test_how_many_fit_and_how_many_are_missing() -> None:
    errors = {2: ([0.01] * 3, [0.5] * 3), 4: ([0.2] * 3, [0.4] * 3)}
    assert say(errors, 9)[1:] == [
        "1 of 2 settings fit what they saw, by a mean ID relative error of at "
        "most 5 %.",
        "6 of 9 trials have scores.",
    ]


def test_pairs() -> None:
    row = {"score": "ood_relative_mse", "p_holm": 0.01}
    rows = [row, row | {"p_holm": 0.2}, row | {"score": "id_mse"}]
    assert "differs in 1 of 2 pairs" in describe_pairs(rows)
    assert "No pair" in describe_pairs([row | {"p_holm": None}])


def test_lines() -> None:
    errors = {d: ([0.01] * 3, [0.1 * d] * 3) for d in (1, 2, 3)}
    rows = [
        {"depth": depth, "quantity": "factorization", "stage": k, "mean": mean}
        for depth, means in ((1, (1.0, 0.5)), (2, (1.0, 0.2, 0.9)))
        for k, mean in enumerate(means)
    ]
    sweep, item = plant(errors), Exhibit("layers", "", "", rows=rows)
    assert describe_lines(sweep, item) == (
        "depth 1: the factorization falls from 1.00 (code) to 0.50 (image); "
        "depth 2: the factorization falls from 1.00 (code) to 0.90 (image), "
        "and is least in stage_0 (0.20)."
    )
    rows = sweep.summary.to_dict("records")
    assert describe_lines(sweep, Exhibit("by_depth", "", "", rows=rows)) == (
        "The OOD relative error rises from 0.10 (depth 1) to 0.30 (depth 3)."
    )


def test_page(tmp_path: Path) -> None:
    errors = {
        d: ([0.01, 0.02, 0.03], [0.1 * d, 0.2 * d, 0.3 * d]) for d in (1, 2, 3)
    }
    sweep, nothing = plant(errors), pd.DataFrame()
    exhibits = make_exhibits(sweep, nothing, nothing)
    paired = pd.DataFrame(columns=["score", "p_holm"])
    write_page(tmp_path, sweep, exhibits, paired, 9)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="figure-scores"' in page and "depth 3" in page
    assert 'href="figures/scores.pdf"' in page
    assert (tmp_path / "figures" / "scores.pdf").is_file()
    assert [s.anchor for s in make_sections(sweep, exhibits, paired)] == [
        *("curves", "layers", "by")
    ]
    # What does not apply is not there.
    assert 'id="section-by"' in page and 'id="section-layers"' not in page
