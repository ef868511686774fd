"""The evaluator: thresholds over seeds, and the model pushed before."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipelines.rules import Rules, Threshold, read_trials
from pipelines.steps.evaluator import (
    check_thresholds,
    compare_with_pushed,
    evaluate_sweep,
    score_pushed_model,
)
from pipelines.steps.trainer import find_model
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.files import write_csv
from tfcomp.training.export import FINGERPRINT

RUN = "logs/tiny/trials/smoke"
MODEL = "saved_models/tiny/smoke/1"
LENIENT = {"id_relative_mse": {"below": 1000.0}}
SCORES = ("mse", "relative_mse", "position_accuracy", "num_peaks")


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


# Thresholds


@pytest.mark.parametrize("is_upper", [True, False])
def test_threshold(is_upper: bool) -> None:
    threshold = Threshold("id_mse", 0.5, is_upper)
    assert threshold.passes(0.4) == is_upper
    assert threshold.passes(0.6) != is_upper
    assert not threshold.passes(0.5)
    assert not threshold.passes(None)
    assert threshold.is_worse(1.2, 1.0, 0.1) == is_upper
    assert threshold.is_worse(0.8, 1.0, 0.1) != is_upper
    assert not threshold.is_worse(1.05, 1.0, 0.1)
    assert not threshold.is_worse(0.95, 1.0, 0.1)
    assert not threshold.is_worse(1.0, 1.0, 0.0)


def test_mean_over_seeds_decides(tmp_path: Path) -> None:
    values = (0.1, 0.2, 0.6)
    write_trials(tmp_path, "id_relative_mse", *values)
    rules = make_rules({"id_relative_mse": {"below": 0.31}})
    verdict = evaluate_sweep(tmp_path, rules, tmp_path / "none")
    (check,) = verdict.checks
    assert verdict.blessed and check.passed and check.count == 3
    assert check.value == pytest.approx(np.mean(values))
    quantile = stats.t.ppf(0.975, 2)
    expected = quantile * np.std(values, ddof=1) / np.sqrt(3)
    assert check.half_width == pytest.approx(expected)
    assert verdict.candidate.name == "t0"
    stricter = make_rules({"id_relative_mse": {"below": 0.29}})
    verdict = evaluate_sweep(tmp_path, stricter, tmp_path / "none")
    assert not verdict.blessed
    line = "not blessed: id_relative_mse 0.3 ± 0.66 must be below 0.29"
    assert verdict.describe() == line


def test_missing_score_does_not_pass(tmp_path: Path) -> None:
    path = write_trials(tmp_path, "ood_mse", 0.5, "")
    rules = make_rules({"ood_mse": {"below": 9.0}})
    (check,) = check_thresholds(read_trials(path), rules)
    assert not check.passed and check.value is None
    assert str(check) == "ood_mse missing must be below 9"


def test_no_candidate_is_a_reason(tmp_path: Path) -> None:
    verdict = evaluate_sweep(tmp_path, make_rules(), tmp_path / "none")
    assert not verdict.blessed and verdict.candidate is None
    assert "no table of trials" in verdict.describe()
    verdict.write(tmp_path / "evaluation.json")
    content = json.loads((tmp_path / "evaluation.json").read_text())
    assert content["blessed"] is False and content["candidate"] is None


def test_the_model_of_a_candidate_is_made(runs_dir: Path) -> None:
    """Trials write no SavedModels; this one is that of the training."""
    made = find_model(runs_dir / RUN)
    fingerprint = (made / FINGERPRINT).read_text()
    shutil.rmtree(runs_dir / "saved_models")
    again = find_model(runs_dir / RUN)
    assert again == made
    assert (again / FINGERPRINT).read_text() == fingerprint
    shutil.rmtree(runs_dir / "saved_models")
    (runs_dir / RUN / "model.keras").unlink()
    with pytest.raises(RunError, match="has no model.keras"):
        find_model(runs_dir / RUN)


# The model that was pushed before


@pytest.fixture
def pushed(runs_dir: Path, tmp_path: Path) -> Path:
    """The same model, pushed before under another fingerprint."""
    folder = tmp_path / "pushed" / "tiny"
    shutil.copytree(runs_dir / MODEL, folder / "1")
    (folder / "1" / FINGERPRINT).write_text("another")
    return folder


def test_scores_of_a_pushed_model(smoke_run: RunConfig, pushed: Path) -> None:
    run = Path(smoke_run.run_dir)
    found = score_pushed_model(pushed / "1", run)
    metrics = json.loads((run / "metrics.json").read_text())
    for subset in ("id", "ood"):
        for score in SCORES:
            expected = metrics[subset][score]
            value = found[f"{subset}_{score}"]
            assert value == pytest.approx(expected, rel=1e-5)


def test_same_model_is_not_worse(runs_dir: Path, pushed: Path) -> None:
    verdict = evaluate_sweep(runs_dir, make_rules(tolerance=1e-4), pushed)
    assert verdict.blessed and verdict.pushed == str(pushed / "1")
    assert len(verdict.checks) == len(verdict.compared) == 1
    assert verdict.describe().endswith(f"; not worse than {pushed / '1'}")


def test_candidate_is_not_compared_with_itself(
    runs_dir: Path, pushed: Path
) -> None:
    shutil.copy(runs_dir / MODEL / FINGERPRINT, pushed / "1" / FINGERPRINT)
    verdict = evaluate_sweep(runs_dir, make_rules(), pushed)
    assert verdict.blessed and verdict.compared == []
    # What is damaged is a copy no more.
    (pushed / "1" / "saved_model.pb").write_bytes(b"broken")
    verdict = evaluate_sweep(runs_dir, make_rules(), pushed)
    assert not verdict.blessed
    (reason,) = verdict.reasons
    assert "push under another name" in reason and "\n" not in reason
    assert "if it is damaged" in reason


def test_worse_than_the_pushed_model(runs_dir: Path, pushed: Path) -> None:
    path = runs_dir / "logs" / "tiny" / "trials.csv"
    (trial,) = read_trials(path)
    score = trial.scores["id_relative_mse"]
    path.write_text(path.read_text().replace(str(score), str(score * 1.2)))
    verdict = evaluate_sweep(runs_dir, make_rules(), pushed)
    assert not verdict.blessed
    assert "must be not worse than" in verdict.describe()
    assert "of tiny/1 by more than 10%" in verdict.describe()
    assert evaluate_sweep(runs_dir, make_rules(tolerance=0.3), pushed).blessed
    # Other scores are not compared.
    rules = make_rules({"ood_rank": {"below": 1.0}})
    run = runs_dir / RUN
    assert compare_with_pushed(run, trial, pushed / "1", rules) == []
