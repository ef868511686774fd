"""The evaluator: the candidate, thresholds, and the model pushed before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pandas import DataFrame
from scipy import stats

from pipelines.profile import Rules, choose_setting
from pipelines.steps import evaluator
from tfcomp.config.errors import RunError
from tfcomp.storage.files import write_csv

LENIENT = {"id_relative_mse": {"below": 1000.0}}
DIGEST = "hash of the examples"


def make_rules(thresholds: dict | None = None, **changes: Any) -> Rules:
    return Rules("tiny", "tiny", thresholds or LENIENT, **changes)


def write_trials(folder: Path, score: str, *values: float | str) -> Path:
    """Writes the table of the trials t0, t1, ... below a folder."""
    first = {"status": "finished", "reason": ""}
    rows = [
        {"trial": f"t{n}", **first, "seed": n, "id_relative_mse": 0.1 * n}
        | {score: value}
        for n, value in enumerate(values)
    ]
    path = folder / "logs" / "tiny" / "trials.csv"
    path.parent.mkdir(parents=True)
    write_csv(path, rows)
    return path


def test_mean_over_seeds_decides(tmp_path: Path) -> None:
    values = (0.1, 0.2, 0.6)
    write_trials(tmp_path, "id_relative_mse", *values)
    rules = make_rules({"id_relative_mse": {"below": 0.31}})
    verdict = evaluator.judge_candidate(rules, tmp_path, "", DIGEST)
    (check,) = verdict.checks
    assert verdict.blessed and check.passed and check.count == 3
    assert check.value == pytest.approx(np.mean(values))
    quantile = stats.t.ppf(0.975, 2)
    expected = quantile * np.std(values, ddof=1) / np.sqrt(3)
    assert check.half_width == pytest.approx(expected)
    assert (verdict.candidate, verdict.run) == ("t0", "logs/tiny/trials/t0")
    stricter = make_rules({"id_relative_mse": {"below": 0.29}})
    verdict = evaluator.judge_candidate(stricter, tmp_path, "", DIGEST)
    assert not verdict.blessed
    line = "not blessed: id_relative_mse 0.3 ± 0.66 must be < 0.29"
    assert verdict.describe() == line


@pytest.mark.parametrize(
    ("bounds", "passes"),
    [
        ({"below": 0.5}, False),  # a bound itself does not pass
        ({"above": 0.4, "below": 0.6}, True),
        ({"above": 0.6, "below": 0.8}, False),
    ],
)
def test_bounds(bounds: dict, passes: bool, tmp_path: Path) -> None:
    path = write_trials(tmp_path, "ood_mse", 0.25, 0.75)
    rules = make_rules({"ood_mse": bounds})
    (check,) = evaluator.check_thresholds(evaluator.read_trials(path), rules)
    assert check.passed == passes


def test_missing_scores_do_not_pass(tmp_path: Path) -> None:
    path = write_trials(tmp_path, "ood_mse", 0.5, "")
    rules = make_rules({"ood_mse": {"below": 9.0}, "ood_odd": {"below": 9.0}})
    for check in evaluator.check_thresholds(evaluator.read_trials(path), rules):
        assert not check.passed and check.value is None
        assert str(check) == f"{check.score} missing must be < 9"


def test_no_candidate_is_a_reason(tmp_path: Path) -> None:
    verdict = evaluator.judge_candidate(make_rules(), tmp_path, "", DIGEST)
    assert not verdict.blessed and verdict.candidate == ""
    assert "no table of trials" in verdict.describe()


# The choice of the candidate


# Depth 2 is better in distribution, depth 3 out of it.
SCORES = {
    ("2", 0): (0.3, 9.0),
    ("2", 1): (0.1, 8.0),
    ("3", 0): (0.4, 0.1),
    ("3", 1): (0.5, 0.2),
}


@pytest.fixture
def trials(tmp_path: Path) -> DataFrame:
    """The table of a sweep, as the command writes it; a score is missing."""
    rows = [
        {"trial": f"{depth}-{seed}", "status": "finished", "reason": ""}
        | {"depth": depth, "encoding": "bump", "seed": seed}
        | dict(zip(("id_relative_mse", "ood_mse"), scores, strict=True))
        for (depth, seed), scores in SCORES.items()
    ]
    rows[1]["ood_mse"] = ""
    write_csv(tmp_path / "trials.csv", rows)
    return evaluator.read_trials(tmp_path / "trials.csv")


def fail(trials: DataFrame, *rows: int) -> None:
    trials.loc[list(rows), ["status", "reason"]] = "failed", "it diverged"
    trials.loc[list(rows), ["id_relative_mse", "ood_mse"]] = float("nan")


def choose(trials: DataFrame, **changes: object) -> list[str]:
    rules = Rules("a", "tiny", LENIENT, **changes)
    return list(choose_setting(trials, rules)["trial"])


def test_best_setting_and_trial_by_id_error(trials: DataFrame) -> None:
    assert trials["setting"][1] == {"depth": "2", "encoding": "bump"}
    assert trials["id_relative_mse"][1] == 0.1 and trials["ood_mse"].isna()[1]
    assert choose(trials) == ["2-1", "2-0"]


@pytest.mark.parametrize("depth", [3, 3.0, "3"])
def test_declared_setting(trials: DataFrame, depth: object) -> None:
    assert choose(trials, setting={"depth": depth}) == ["3-0", "3-1"]


def test_failed_trials_are_not_chosen(trials: DataFrame) -> None:
    fail(trials, 1)
    assert choose(trials) == ["2-0"]
    assert choose(trials, min_seeds=2) == ["3-0", "3-1"]


def test_nothing_to_choose(trials: DataFrame) -> None:
    for absent in ({"depth": 9}, {"depth": 3, "encoding": "ramp"}):
        with pytest.raises(RunError, match=f"has no trials with {absent}"):
            choose(trials, setting=absent)
    with pytest.raises(
        RunError, match="at most 0 finished trials with id_relative_mse"
    ):
        choose(trials.drop(columns="id_relative_mse"))
    fail(trials, 0, 1, 2, 3)
    with pytest.raises(RunError, match="at most 0 finished .*: it diverged"):
        choose(trials)


# The model that was pushed before


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    """A pushed version whose record has an ID error of .1."""
    version = tmp_path / "pushed" / "tiny" / "1"
    (version / evaluator.LINEAGE).parent.mkdir(parents=True)
    record = {"data": DIGEST, "metrics": {"id": {"relative_mse": 0.1}}}
    (version / evaluator.LINEAGE).write_text(json.dumps(record))
    return version


def compare(
    folder: Path, error: float, **bounds: float
) -> evaluator.Evaluation:
    """Judges a candidate with an error beside the pushed model."""
    runs = folder / str(error)
    write_trials(runs, "id_relative_mse", error)
    rules = make_rules({"id_relative_mse": bounds or {"below": 1000.0}})
    return evaluator.judge_candidate(rules, runs, folder / "pushed", DIGEST)


def test_worse_than_the_pushed_model(tmp_path: Path, pushed: Path) -> None:
    verdict = compare(tmp_path, 0.109)
    assert verdict.blessed and verdict.pushed == str(pushed)
    assert verdict.describe().endswith(f"; not worse than {pushed}")
    verdict = compare(tmp_path, 0.111)
    assert not verdict.blessed and len(verdict.compared) == 1
    assert "must be not worse than 0.1 of tiny/1 by more than 10%" in (
        verdict.describe()
    )
    # Where a score must be above a bound, less is worse.
    assert compare(tmp_path, 0.112, above=0.01).blessed
    assert not compare(tmp_path, 0.089, above=0.01).blessed


@pytest.mark.parametrize("subset", ["id_test", "ood_new"])
def test_all_subsets_are_compared(
    tmp_path: Path, pushed: Path, subset: str
) -> None:
    record = {"data": DIGEST, "metrics": {subset: {"relative_mse": 0.1}}}
    (pushed / evaluator.LINEAGE).write_text(json.dumps(record))
    name = f"{subset}_relative_mse"
    write_trials(tmp_path, name, 0.9)
    rules, folder = make_rules({name: {"below": 1.0}}), tmp_path / "pushed"
    verdict = evaluator.judge_candidate(rules, tmp_path, folder, DIGEST)
    assert not verdict.blessed and len(verdict.compared) == 1


def test_scores_on_other_examples_are_not_compared(
    tmp_path: Path, pushed: Path
) -> None:
    other = '{"data": "others", "metrics": {"id": {"relative_mse": 0.1}}}'
    for number, record in enumerate(("{", "{}", other)):
        (pushed / evaluator.LINEAGE).write_text(record)
        verdict = compare(tmp_path, 0.5 + number)
        assert verdict.blessed and verdict.pushed == ""
        assert verdict.compared == [] == verdict.reasons
