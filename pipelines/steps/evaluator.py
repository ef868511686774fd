"""evaluator: is the candidate good enough, and not worse than the last one?

The thresholds hold for means over seeds of the candidate's setting, since no
single run proves anything. The model that was pushed before draws the same
images as the candidate, and both are scored.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kfp import dsl

from pipelines.profile import check_profile, parse_profile
from pipelines.rules import Rules
from pipelines.running_step import run_step
from pipelines.steps.candidates import (
    TrialRow,
    choose_setting,
    choose_trial,
    find_model,
    read_trials,
)
from pipelines.steps.trainer import LOGS
from tfcomp.config.errors import RunError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.storage.files import write_text
from tfcomp.storage.model_versions import is_copy, list_versions


def execute(
    profile: str,
    runs: dsl.Artifact,
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Artifact,
    metrics: dsl.Metrics,
) -> bool:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("evaluator") as step:
        parsed = parse_profile(profile)
        check_profile(parsed)  # imports its plugins
        rules = parsed.rules
        pushed = Path(export_dir, rules.push_as)
        verdict = evaluate_sweep(Path(runs.path), rules, pushed)
        step.place(evaluation, work_dir, "evaluation.json")
        verdict.write(Path(evaluation.path))
        evaluation.metadata["candidate"] = verdict.run
        step.log(metrics, verdict.list_numbers())
        step.note = verdict.describe()
        if not verdict.blessed:
            step.stop = step.note
        return verdict.blessed


@dataclass(frozen=True)
class Check:
    """One rule and what came of it.

    Attributes:
        rule: What must hold, in words.
        value: The mean over seeds, or the candidate's score.
        half_width: Half of the 95 % interval of a mean over several seeds.
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
        compared = f"; not worse than {self.pushed}" if self.pushed else ""
        return f"blessed {self.candidate.name}: {scores}{compared}"

    def list_numbers(self) -> dict[str, float]:
        """The scores over seeds, and 1 for blessed."""
        found = {check.score: check.value for check in self.checks}
        numbers = {k: v for k, v in found.items() if v is not None}
        return {"blessed": float(self.blessed), **numbers}

    def write(self, path: Path) -> None:
        """Writes `evaluation.json`."""
        content = {"blessed": self.blessed, **asdict(self)}
        if self.candidate:
            content["candidate"]["run"] = self.run
        write_text(path, json.dumps(content, indent=2) + "\n")


def evaluate_sweep(runs_dir: Path, rules: Rules, pushed: Path) -> Evaluation:
    """Chooses the candidate of a sweep and judges it.

    The trainer wrote to `runs_dir`; earlier versions are in `pushed`.
    """
    try:
        trials = read_trials(runs_dir / LOGS / rules.sweep / "trials.csv")
        setting = choose_setting(trials, rules)
    except RunError as error:
        return Evaluation(None, [], [str(error)])
    candidate = choose_trial(setting, rules)
    run = f"{LOGS}/{rules.sweep}/trials/{candidate.name}"
    checks = check_thresholds(setting, rules)
    compared, problems = [], []
    last = next(reversed(list_versions(pushed)), None)
    if last:
        try:
            compared = compare_with_pushed(
                runs_dir / run, candidate, last, rules
            )
        except RunError as error:
            problems = [str(error)]
    failed = [str(c) for c in [*checks, *compared] if not c.passed]
    reasons = [*failed, *problems]
    return Evaluation(
        candidate, checks, reasons, compared, run, str(last or "")
    )


def check_thresholds(setting: Sequence[TrialRow], rules: Rules) -> list[Check]:
    """Compares means over seeds with the thresholds."""
    checks = []
    for threshold in rules.list_thresholds():
        values = [trial.scores.get(threshold.score) for trial in setting]
        found = compute_statistics(values)  # none if a seed lacks its score
        mean = found.mean if found else None
        spread = found.half_width if found else None
        passed = threshold.passes(mean)
        rule = str(threshold)
        checks.append(
            Check(threshold.score, rule, mean, spread, len(values), passed)
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
    with start_tensorflow():
        from pipelines.steps.pushed_model import score_pushed_model

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
