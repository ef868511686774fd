"""Step `evaluator`: decides whether the candidate may be pushed.

Means over seeds decide. The ID error alone chooses the candidate: a choice by
an OOD score would use the held-out combinations to select the model, which
makes its OOD scores invalid.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.profile import Profile, find_sweep, make_works
from pipelines.steps import place, run_step
from tfcomp.config.errors import RunError
from tfcomp.storage.files import list_versions, read_json, write_text
from tfcomp.sweeps.grid import list_scores, read_result
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.tables.read import print_left_out

if TYPE_CHECKING:
    from kfp import dsl
    from pandas import DataFrame

CHOOSE_BY = "id_relative_mse"
TOLERANCE = 0.1  # how much worse than the last model, relatively
# The evaluation in a version of a pushed model.
EVALUATION = Path("assets.extra") / "evaluation.json"


@dataclass(frozen=True)
class Bound:
    """What a score must be.

    Attributes:
        score: Its name, as in `trials.csv`.
        side: `max` or `min`.
        limit: The bound, which itself is accepted.
        why: Where the limit comes from, if not from the profile.
    """

    score: str
    side: str
    limit: float
    why: str = ""

    def accepts(self, value: float) -> bool:
        """Compares a value with the bound. NaN, a missing one, never passes."""
        if self.side == "max":
            return value <= self.limit
        return value >= self.limit

    def describe(self, value: float) -> str:
        """Formats a comparison, as `id_mse 0.2 is not at most 0.1`."""
        verb = "is" if self.accepts(value) else "is not"
        side = "at most" if self.side == "max" else "at least"
        limit = f"{side} {self.limit:.4g}{self.why}"
        return f"{self.score} {value:.4g} {verb} {limit}"


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
        for score, *_ in parsed.bounds:
            if score in content["scores"]:
                metrics.log_metric(score, content["scores"][score])

        is_blessed: bool = content["blessed"]
        if not is_blessed:
            step.state = "stopped"
        step.note = content["verdict"]
        return is_blessed


def evaluate_candidate(
    profile: Profile,
    runs_dir: str | Path,
    export_dir: str | Path,
) -> dict[str, Any]:
    """Compares the candidate with the thresholds and the last pushed model.

    Args:
        profile: The profile, with the sweep and the thresholds.
        runs_dir: The output of the trainer.
        export_dir: The folder that models are pushed to.

    Returns:
        The content of `evaluation.json`: whether the candidate is `blessed`,
        a `verdict` in words, its `run` as a path below `runs_dir`, the
        `scores` of its setting, which are means over seeds, and all `checks`.
    """
    sweep = find_sweep(make_works(profile, runs_dir), profile)
    try:
        trials = choose_setting(sweep)
    except RunError as error:
        verdict = f"not blessed: {error}"
        return {"blessed": False, "verdict": verdict, "scores": {}}

    bounds = [Bound(*bound) for bound in profile.bounds]
    versions = list_versions(Path(export_dir, profile.push_as))
    if versions:
        bounds += compare_with_pushed(bounds, versions[-1])

    means = trials.mean(skipna=False).dropna().to_dict()
    checks = []
    failed = []
    for bound in bounds:
        value = means.get(bound.score, math.nan)
        checks.append(bound.describe(value))
        if not bound.accepts(value):
            failed.append(checks[-1])

    candidate = Path(str(trials[CHOOSE_BY].idxmin()))
    verdict = f"blessed {candidate.name}: {', '.join(checks)}"
    if failed:
        verdict = f"not blessed: {', '.join(failed)}"
    return {
        "blessed": not failed,
        "verdict": verdict,
        "run": str(candidate.relative_to(runs_dir)),
        "scores": means,
        "checks": checks,
    }


def choose_setting(sweep: Sweep) -> DataFrame:
    """Chooses the setting with the lowest mean ID error.

    Returns:
        Its scores, a row for each trial, with the folder of the trial as index.

    Raises:
        RunError: If no setting has finished with all of its seeds.
    """
    import pandas as pd

    settings = []
    by_setting = itertools.groupby(sweep.items, key=lambda trial: trial.setting)
    for _, group in by_setting:
        trials = list(group)
        rows = []
        for trial in trials:
            run, reasons = read_result(trial)
            print_left_out(reasons)
            rows.append(list_scores(run))
        scores = pd.DataFrame(rows, index=[str(trial.path) for trial in trials])
        if CHOOSE_BY in scores and scores[CHOOSE_BY].notna().all():
            settings.append(scores)

    if not settings:
        name = sweep.folder.name
        raise RunError(f"no setting of {name} has finished with all its seeds")
    return min(settings, key=lambda scores: scores[CHOOSE_BY].mean())


def compare_with_pushed(bounds: Sequence[Bound], version: Path) -> list[Bound]:
    """Lists the same bounds with limits from the scores of a pushed model."""
    file = version / EVALUATION
    if not file.exists():  # a model that was copied there by hand
        return []

    scores = read_json(file).get("scores", {})
    others = []
    for bound in bounds:
        if bound.score in scores:
            last = scores[bound.score]
            slack = TOLERANCE * abs(last)
            if bound.side == "min":
                slack = -slack
            why = f" (version {version.name} has {last:.4g})"
            others.append(replace(bound, limit=last + slack, why=why))
    return others
