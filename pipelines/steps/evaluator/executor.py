"""evaluator: is the candidate good enough, and not worse than the last one?

The thresholds hold for means over seeds of the candidate's setting, since no
single run proves anything. The model that was pushed before draws the same
images as the candidate, and both are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.rules import Rules
from pipelines.steps.evaluator.blessing import Check
from pipelines.steps.evaluator.blessing import Evaluation
from pipelines.steps.evaluator.candidates import TrialRow
from pipelines.steps.evaluator.candidates import choose_setting
from pipelines.steps.evaluator.candidates import choose_trial
from pipelines.steps.evaluator.candidates import find_model
from pipelines.steps.evaluator.candidates import read_trials
from pipelines.steps.trainer.executor import LOGS
from tfcomp.config.errors import RunError
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.storage.model_versions import is_copy
from tfcomp.storage.model_versions import list_versions


def evaluate_sweep(runs_dir: Path, rules: Rules, pushed: Path) -> Evaluation:
    """Chooses the candidate of a sweep and judges it.

    Args:
        runs_dir: Where the trainer wrote.
        rules: The rules.
        pushed: Parent of the versions that were pushed before.
    """
    try:
        trials = read_trials(runs_dir / LOGS / rules.sweep / "trials.csv")
        setting = choose_setting(trials, rules)
    except RunError as error:
        return Evaluation(None, [], [str(error)])
    candidate = choose_trial(setting, rules)
    run = f"{LOGS}/{rules.sweep}/trials/{candidate.name}"
    checks = check_thresholds(setting, rules)
    reasons = [str(check) for check in checks if not check.passed]
    versions = list_versions(pushed)
    if not versions:
        return Evaluation(candidate, checks, reasons, run=run)
    compared = []
    try:
        compared = compare_with_pushed(
            runs_dir / run, candidate, versions[-1], rules
        )
    except RunError as error:
        reasons.append(str(error))
    reasons += [str(check) for check in compared if not check.passed]
    return Evaluation(
        candidate, checks, reasons, compared, run, str(versions[-1])
    )


def check_thresholds(setting: Sequence[TrialRow], rules: Rules) -> list[Check]:
    """Compares means over seeds with the thresholds."""
    checks = []
    for threshold in rules.list_thresholds():
        values = [trial.scores.get(threshold.score) for trial in setting]
        found = compute_statistics(values)  # none if a seed lacks its score
        checks.append(
            Check(
                score=threshold.score,
                rule=str(threshold),
                value=found.mean if found else None,
                half_width=found.half_width if found else None,
                count=len(values),
                passed=threshold.passes(found.mean if found else None),
            )
        )
    return checks


def compare_with_pushed(
    run: Path, candidate: TrialRow, pushed: Path, rules: Rules
) -> list[Check]:
    """Compares scores of the candidate with those of a pushed model.

    Raises:
        RunError: If the candidate has no SavedModel, or the pushed model
            cannot draw the candidate's images.
    """
    if is_copy(pushed, find_model(run)):
        return []  # it is the same model
    # TensorFlow is imported where a model has to be asked.
    from pipelines.steps.evaluator.pushed_model import score_pushed_model

    old = score_pushed_model(pushed, run)
    checks = []
    for threshold in rules.list_thresholds():
        before = old.get(threshold.score)
        new = candidate.scores.get(threshold.score)
        if before is None or new is None:
            continue  # nothing to be worse than; thresholds see to the rest
        rule = (
            f"not worse than {before:.4g} of {pushed.parent.name}/"
            f"{pushed.name} by more than {rules.tolerance:.0%}"
        )
        worse = threshold.is_worse(new, before, rules.tolerance)
        checks.append(Check(threshold.score, rule, new, None, 1, not worse))
    return checks
