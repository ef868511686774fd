"""Step `evaluator`: decides whether the candidate may be pushed.

An ID error alone chooses the candidate. A choice by an OOD score would use the
held-out combinations to select the model, which makes its OOD scores invalid.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.profile import Profile, find_sweep, make_works
from pipelines.steps import place, run_step
from tfcomp.config.errors import RunError
from tfcomp.storage.files import read_json, write_text
from tfcomp.storage.output_folders import list_versions
from tfcomp.sweeps.grid import list_scores, read_result
from tfcomp.sweeps.sweep_run import Sweep

if TYPE_CHECKING:
    from kfp import dsl

CHOOSE_BY = "id_relative_mse"
TOLERANCE = 0.1  # how much worse than the last model, relatively
# The evaluation in a version of a pushed model.
EVALUATION = Path("assets.extra") / "evaluation.json"


@dataclass(frozen=True)
class ScoredTrial:
    """A trial's folder, and its scores as `trials.csv` names them."""

    path: Path
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Check:
    """A score beside its bound; without a value it is missing."""

    score: str
    value: float | None
    rule: str
    passed: bool

    def __str__(self) -> str:
        value = "(missing)" if self.value is None else f"{self.value:.4g}"
        verb = "is" if self.passed else "is not"
        return f"{self.score} {value} {verb} {self.rule}"


def run(
    profile: str,
    runs_dir: str,
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Artifact,
    metrics: dsl.Metrics,
) -> bool:
    """Writes the evaluation; returns True if the candidate may be pushed."""
    with run_step("evaluator") as step:
        parsed = Profile.from_json(profile)
        content = evaluate_candidate(parsed, runs_dir, export_dir)
        file = place(evaluation, work_dir, "evaluation.json")
        write_text(file, json.dumps(content, indent=2) + "\n")
        for check in content["checks"]:
            if check["value"] is not None:
                metrics.log_metric(check["score"], check["value"])

        is_blessed: bool = content["blessed"]
        if not is_blessed:
            step.state = "stopped"
        step.note = content["verdict"]
        return is_blessed


def evaluate_candidate(
    profile: Profile, runs_dir: str | Path, export_dir: str | Path
) -> dict[str, Any]:
    """Compares the candidate with the thresholds and the last pushed model.

    Args:
        profile: The profile, with the sweep and the thresholds.
        runs_dir: The output of the trainer.
        export_dir: The folder that models are pushed to.

    Returns:
        The content of `evaluation.json`: whether the candidate is `blessed`, a
        `verdict` in words, its `run` as a path below `runs_dir`, its `scores`
        and all `checks`.
    """
    sweep = find_sweep(make_works(profile, runs_dir), profile)
    try:
        trials = choose_setting(sweep)
    except RunError as error:
        verdict = f"not blessed: {error}"
        return {"blessed": False, "verdict": verdict, "checks": []}

    candidate = min(trials, key=lambda trial: trial.scores[CHOOSE_BY])
    checks = check_thresholds(profile, trials)
    versions = list_versions(Path(export_dir, profile.push_as))
    if versions:
        checks += compare_with_pushed(profile, candidate, versions[-1])

    failed = [check for check in checks if not check.passed]
    verdict = f"blessed {candidate.path.name}: {join_checks(checks)}"
    if failed:
        verdict = f"not blessed: {join_checks(failed)}"
    return {
        "blessed": not failed,
        "verdict": verdict,
        "run": str(candidate.path.relative_to(runs_dir)),
        "scores": candidate.scores,
        "checks": [dataclasses.asdict(check) for check in checks],
    }


def join_checks(checks: Sequence[Check]) -> str:
    """Formats checks on one line."""
    return ", ".join(map(str, checks))


def choose_setting(sweep: Sweep) -> list[ScoredTrial]:
    """Chooses the setting with the lowest mean ID error.

    Raises:
        RunError: If no setting has finished with all of its seeds.
    """
    settings = []
    by_setting = itertools.groupby(sweep.items, key=lambda item: item.setting)
    for _, items in by_setting:
        trials = []
        for item in items:
            scores = list_scores(read_result(item))
            trials.append(ScoredTrial(item.path, drop_nan(scores)))
        if all(CHOOSE_BY in trial.scores for trial in trials):
            settings.append(trials)

    if not settings:
        name = sweep.folder.name
        raise RunError(f"no setting of {name} has finished with all its seeds")
    means = [compute_mean(trials, CHOOSE_BY) for trials in settings]
    return settings[means.index(min(means))]


def drop_nan(scores: Mapping[str, float]) -> dict[str, float]:
    """Leaves out scores that are no number, as JSON has none."""
    return {name: x for name, x in scores.items() if not math.isnan(x)}


def compute_mean(trials: Sequence[ScoredTrial], score: str) -> float:
    """Computes the mean over seeds, NaN if one of them lacks the score."""
    values = [trial.scores.get(score, math.nan) for trial in trials]
    return statistics.fmean(values)


def check_thresholds(
    profile: Profile, trials: Sequence[ScoredTrial]
) -> list[Check]:
    """Compares means over seeds with the thresholds of a profile."""
    checks = []
    for score, bound in profile.maxima.items():
        mean = compute_mean(trials, score)
        checks.append(make_check(score, mean, "at most", bound))
    for score, bound in profile.minima.items():
        mean = compute_mean(trials, score)
        checks.append(make_check(score, mean, "at least", bound))
    return checks


def make_check(
    score: str, value: float, side: str, bound: float, why: str = ""
) -> Check:
    """Compares a value with a bound; NaN does not pass.

    Args:
        score: The name of the score.
        value: Its value.
        side: `at most` or `at least`.
        bound: The bound, which itself passes.
        why: Where the bound comes from.
    """
    passed = value <= bound if side == "at most" else value >= bound
    rule = f"{side} {bound:.4g}{why}"
    known = None if math.isnan(value) else value
    return Check(score, known, rule, passed)


def compare_with_pushed(
    profile: Profile, candidate: ScoredTrial, version: Path
) -> Iterator[Check]:
    """Compares the candidate's own scores with those of a pushed model."""
    file = version / EVALUATION
    pushed: Mapping[str, float] = {}
    if file.exists():  # a model may also be pushed by hand
        pushed = read_json(file).get("scores", {})

    for score in (*profile.maxima, *profile.minima):
        if score not in pushed:
            continue
        last = pushed[score]
        value = candidate.scores.get(score, math.nan)
        slack = TOLERANCE * abs(last)
        why = f" (version {version.name} has {last:.4g})"
        if score in profile.maxima:
            yield make_check(score, value, "at most", last + slack, why)
        if score in profile.minima:
            yield make_check(score, value, "at least", last - slack, why)
