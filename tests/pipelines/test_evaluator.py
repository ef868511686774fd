"""The evaluator: the candidate, thresholds, and the model pushed before."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest import approx

from pipelines import steps
from pipelines.profile import Profile
from pipelines.steps import Bound

Scores = Mapping[str, float]
Evaluate = Callable[..., dict[str, Any]]
LENIENT = "--max=id_relative_mse=1000"


@pytest.fixture
def evaluate(
    make_profile: Callable[..., Profile],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Evaluate:
    """Evaluates a sweep over depths and seeds with the given scores."""

    def run(
        *bounds: str,
        scores: Mapping[tuple[int, int], Scores],
    ) -> dict[str, Any]:
        monkeypatch.setattr(steps, "read_result", lambda trial: (trial, []))
        monkeypatch.setattr(
            steps,
            "list_scores",
            lambda trial: scores[trial.setting["depth"], trial.seed],
        )
        depths = sorted({str(depth) for depth, _ in scores})
        profile = make_profile(
            f"--grid=depth={','.join(depths)}",
            f"--seeds={len(scores) // len(depths)}",
            rules=["--candidate=tiny", "--push_as=tiny", *bounds],
        )
        return steps.evaluate_candidate(
            profile, tmp_path / "runs", tmp_path / "out"
        )

    return run


def list_scores(*errors: float, **others: float) -> dict:
    """Scores of one setting, with an ID error for each seed."""
    return {
        (2, seed): {"id_relative_mse": error, **others}
        for seed, error in enumerate(errors)
    }


def test_mean_over_seeds_decides(evaluate: Evaluate):
    scores = list_scores(0.1, 0.2, 0.6)

    accepted = evaluate("--max=id_relative_mse=0.301", scores=scores)
    refused = evaluate("--max=id_relative_mse=0.299", scores=scores)

    assert accepted["blessed"]
    assert not refused["blessed"]
    assert accepted["scores"]["id_relative_mse"] == approx(0.3)
    assert len(refused["checks"]) == 1


@pytest.mark.parametrize(
    ("side", "value", "is_accepted"),
    [
        ("max", 0.5, True),  # the bound itself
        ("max", 0.6, False),
        ("min", 0.5, True),
        ("min", 0.4, False),
        ("max", math.nan, False),
        ("min", math.nan, False),
    ],
)
def test_bounds(side: str, value: float, is_accepted: bool):
    bound = Bound("mse", side, 0.5)
    assert bound.accepts(value) == is_accepted
    assert ("is not" in bound.describe(value)) != is_accepted


def test_score_that_a_seed_lacks_does_not_pass(evaluate: Evaluate):
    scores = list_scores(0.1, 0.2, ood_mse=0.1)
    del scores[2, 1]["ood_mse"]
    result = evaluate("--max=ood_mse=9", scores=scores)
    assert not result["blessed"]
    assert "ood_mse" not in result["scores"]


# Depth 2 is better in distribution, depth 3 out of it.
TWO_DEPTHS = {
    (2, 0): {"id_relative_mse": 0.3, "ood_mse": 9.0},
    (2, 1): {"id_relative_mse": 0.1, "ood_mse": 8.0},
    (3, 0): {"id_relative_mse": 0.4, "ood_mse": 0.1},
    (3, 1): {"id_relative_mse": 0.5, "ood_mse": 0.2},
}


def test_id_error_chooses_setting_and_trial(evaluate: Evaluate):
    result = evaluate(LENIENT, scores=TWO_DEPTHS)
    assert result["scores"] == approx({"id_relative_mse": 0.2, "ood_mse": 8.5})
    # A better ID error of the other seed makes it the candidate.
    swapped = {**TWO_DEPTHS, (2, 0): {"id_relative_mse": 0.05, "ood_mse": 9.0}}
    assert evaluate(LENIENT, scores=swapped)["run"] != result["run"]


def test_settings_must_be_complete(evaluate: Evaluate):
    incomplete = {**TWO_DEPTHS, (2, 1): {}}
    result = evaluate(LENIENT, scores=incomplete)
    assert result["blessed"]
    assert result["scores"]["id_relative_mse"] == approx(0.45)

    nothing = dict.fromkeys(TWO_DEPTHS, {})
    result = evaluate(LENIENT, scores=nothing)
    assert not result["blessed"]
    assert "tiny" in result["verdict"]


# The model that was pushed before


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    """The evaluation of a pushed version, with an ID error of 0.1."""
    file = tmp_path / "out" / "tiny" / "1" / steps.EVALUATION
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"scores": {"id_relative_mse": 0.1}}))
    return file


@pytest.mark.usefixtures("pushed")
@pytest.mark.parametrize(
    ("threshold", "error", "is_blessed"),
    [
        (LENIENT, 0.109, True),  # up to 10 % worse
        (LENIENT, 0.111, False),
        (LENIENT, 0.001, True),
        # Where a score must be above a bound, less is worse.
        ("--min=id_relative_mse=0", 0.111, True),
        ("--min=id_relative_mse=0", 0.091, True),
        ("--min=id_relative_mse=0", 0.089, False),
    ],
)
def test_worse_than_the_pushed_model(
    threshold: str,
    error: float,
    is_blessed: bool,
    evaluate: Evaluate,
):
    result = evaluate(threshold, scores=list_scores(error))
    assert result["blessed"] == is_blessed
    assert len(result["checks"]) == 2


def test_versions_without_the_score_are_not_compared(
    pushed: Path,
    evaluate: Evaluate,
):
    for text in ("{}", '{"scores": {"ood_mse": 0.1}}'):
        pushed.write_text(text)
        assert evaluate(LENIENT, scores=list_scores(0.5))["blessed"]
    pushed.unlink()
    assert evaluate(LENIENT, scores=list_scores(0.5))["blessed"]
