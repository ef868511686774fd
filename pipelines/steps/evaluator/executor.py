"""evaluator: is the candidate good enough, and not worse than the last one?

The thresholds hold for means over seeds of the candidate's setting, since no
single run proves anything. The model that was pushed before is asked for the
same images as the candidate, and both are scored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pipelines.rules import Rules
from pipelines.steps.evaluator.candidates import TrialRow
from pipelines.steps.evaluator.candidates import choose_setting
from pipelines.steps.evaluator.candidates import choose_trial
from pipelines.steps.evaluator.candidates import read_trials
from pipelines.steps.trainer.executor import LOGS
from pipelines.steps.trainer.executor import MODELS
from tfcomp.config.errors import RunError
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.storage.files import write_text
from tfcomp.storage.model_versions import is_copy
from tfcomp.storage.model_versions import list_versions


@dataclass(frozen=True)
class Check:
    """One rule and what came of it.

    Attributes:
        score: The score.
        rule: What must hold, in words.
        value: The mean over seeds, or the candidate's score.
        half_width: Half of the 95 % interval of a mean; None otherwise, and
            for one seed.
        count: Number of seeds.
        passed: Whether it holds.
    """

    score: str
    rule: str
    value: float | None
    half_width: float | None
    count: int
    passed: bool

    def __str__(self) -> str:
        value = "missing" if self.value is None else f"{self.value:.4g}"
        spread = f" ± {self.half_width:.2g}" if self.half_width else ""
        word = "is" if self.passed else "must be"
        return f"{self.score} {value}{spread} {word} {self.rule}"


@dataclass(frozen=True)
class Evaluation:
    """The verdict of the evaluator.

    Attributes:
        candidate: The trial, None if there is none to choose.
        checks: The thresholds.
        reasons: Why it is not blessed; empty if it is.
        compared: Comparisons with the model that was pushed before; none if
            it is the candidate itself.
        run: Run folder of the candidate, from where the trainer wrote.
        pushed: Folder of the version that it was compared with, if any.
    """

    candidate: TrialRow | None
    checks: list[Check]
    reasons: list[str]
    compared: list[Check] = field(default_factory=list)
    run: str = ""
    pushed: str = ""

    @property
    def blessed(self) -> bool:
        """Whether the candidate may be pushed."""
        return not self.reasons

    def describe(self) -> str:
        """The verdict in one line."""
        if not self.blessed:
            return "not blessed: " + "; ".join(self.reasons)
        scores = ", ".join(map(str, self.checks))
        line = f"blessed {self.candidate.name}: {scores}"
        compared = f"; not worse than {self.pushed}" if self.pushed else ""
        return line + compared

    def list_numbers(self) -> dict[str, float]:
        """The scores over seeds, and 1 for blessed."""
        numbers = {"blessed": float(self.blessed)}
        for check in self.checks:
            if check.value is not None:
                numbers[check.score] = check.value
        return numbers

    def write(self, path: Path) -> None:
        """Writes `evaluation.json`."""
        content: dict[str, Any] = {"blessed": self.blessed, **asdict(self)}
        if self.candidate:
            content["candidate"]["setting"] = dict(self.candidate.setting)
            content["candidate"]["run"] = self.run
        write_text(path, json.dumps(content, indent=2) + "\n")


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


def find_candidate(runs_dir: Path, evaluation: Path) -> Path:
    """The run folder of the candidate that an `evaluation.json` names."""
    content = json.loads(evaluation.read_text("utf-8"))
    return runs_dir / content["candidate"]["run"]


def find_model(run: Path) -> Path:
    """The SavedModel that the run of a trial exported.

    Args:
        run: The run folder, as `find_candidate` gives it.

    Raises:
        RunError: If it is not there.
    """
    runs_dir, sweep = run.parents[3], run.parents[1].name
    folder = runs_dir / MODELS / sweep / run.name
    versions = list_versions(folder)
    if not versions:
        raise RunError(f"the candidate has no SavedModel in {folder}")
    return versions[-1]
