"""The evaluator: thresholds over seeds, and the model pushed before."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipelines.rules import Rules, read_trials
from pipelines.steps.evaluator import (
    Evaluation,
    check_thresholds,
    judge_candidate,
)
from pipelines.steps.pusher import LINEAGE
from pipelines.steps.trainer import find_model
from tfcomp.config.errors import RunError
from tfcomp.storage.files import write_csv
from tfcomp.training.export import FINGERPRINT

RUN = "logs/tiny/trials/smoke"
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
    verdict = judge_candidate(rules, tmp_path, "", DIGEST)
    (check,) = verdict.checks
    assert verdict.blessed and check.passed and check.count == 3
    assert check.value == pytest.approx(np.mean(values))
    quantile = stats.t.ppf(0.975, 2)
    expected = quantile * np.std(values, ddof=1) / np.sqrt(3)
    assert check.half_width == pytest.approx(expected)
    assert (verdict.candidate, verdict.run) == ("t0", "logs/tiny/trials/t0")
    stricter = make_rules({"id_relative_mse": {"below": 0.29}})
    verdict = judge_candidate(stricter, tmp_path, "", DIGEST)
    assert not verdict.blessed
    line = "not blessed: id_relative_mse 0.3 ± 0.66 must be < 0.29"
    assert verdict.describe() == line


@pytest.mark.parametrize(
    ("bounds", "passes"),
    [
        ({"below": 0.5}, False),  # a bound itself does not pass
        ({"above": 0.5}, False),
        ({"above": 0.4}, True),
        ({"above": 0.4, "below": 0.6}, True),
        ({"above": 0.6, "below": 0.8}, False),
    ],
)
def test_bounds(bounds: dict, passes: bool, tmp_path: Path) -> None:
    path = write_trials(tmp_path, "ood_mse", 0.25, 0.75)
    rules = make_rules({"ood_mse": bounds})
    (check,) = check_thresholds(read_trials(path), rules)
    assert check.passed == passes


@pytest.mark.parametrize("score", ["ood_mse", "ood_unknown"])
def test_missing_score_does_not_pass(tmp_path: Path, score: str) -> None:
    path = write_trials(tmp_path, "ood_mse", 0.5, "")
    rules = make_rules({score: {"below": 9.0}})
    (check,) = check_thresholds(read_trials(path), rules)
    assert not check.passed and check.value is None
    assert str(check) == f"{score} missing must be < 9"


def test_no_candidate_is_a_reason(tmp_path: Path) -> None:
    verdict = judge_candidate(make_rules(), tmp_path, "", DIGEST)
    assert not verdict.blessed and verdict.candidate == ""
    assert "no table of trials" in verdict.describe()


def test_the_model_of_a_candidate_is_made(runs_dir: Path) -> None:
    """Trials write no SavedModels; this one comes from the training."""
    made = find_model(runs_dir / RUN)
    fingerprint = (made / FINGERPRINT).read_text()
    shutil.rmtree(runs_dir / "saved_models")
    again = find_model(runs_dir / RUN)
    assert again == made
    assert (again / FINGERPRINT).read_text() == fingerprint
    shutil.rmtree(runs_dir / "saved_models")
    (runs_dir / RUN / "model.keras").unlink()
    with pytest.raises(RunError, match=r"has no model.keras"):
        find_model(runs_dir / RUN)


# The model that was pushed before


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    """A pushed version whose record has an ID error of .1."""
    version = tmp_path / "pushed" / "tiny" / "1"
    (version / LINEAGE).parent.mkdir(parents=True)
    record = {"data": DIGEST, "metrics": {"id": {"relative_mse": 0.1}}}
    (version / LINEAGE).write_text(json.dumps(record))
    return version


def compare(folder: Path, error: float, **bounds: float) -> Evaluation:
    """Judges a candidate with an error beside the pushed model."""
    runs = folder / str(error)
    write_trials(runs, "id_relative_mse", error)
    rules = make_rules({"id_relative_mse": bounds or {"below": 1000.0}})
    return judge_candidate(rules, runs, folder / "pushed", DIGEST)


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


@pytest.mark.parametrize(
    "record",
    ["{", "{}", '{"data": "others", "metrics": {"id": {"relative_mse": 0.1}}}'],
)
def test_scores_on_other_examples_are_not_compared(
    record: str, tmp_path: Path, pushed: Path
) -> None:
    (pushed / LINEAGE).write_text(record)
    verdict = compare(tmp_path, 0.5)
    assert verdict.blessed and verdict.compared == [] == verdict.reasons
    (pushed / LINEAGE).unlink()
    verdict = compare(tmp_path, 0.6)
    assert verdict.blessed and verdict.pushed == ""
