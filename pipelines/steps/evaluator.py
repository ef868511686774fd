"""Judges the candidate by thresholds and by the model pushed before.

The mean over seeds decides; its 95 % interval is recorded beside it.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.profile import Rules, choose_setting, parse_profile
from pipelines.steps import place, run_step
from pipelines.steps.training import LOGS
from reproduction.verdicts import above, below
from tfcomp.config.errors import RunError
from tfcomp.statistics.seed_statistics import compute_statistics, list_numbers
from tfcomp.storage import files
from tfcomp.storage.output_folders import list_versions

if TYPE_CHECKING:
    from kfp import dsl
    from pandas import DataFrame

LINEAGE = Path("assets.extra") / "lineage.json"  # of a pushed model
TOLERANCE = 0.1  # how much worse than the last model, relatively


@dataclass(frozen=True)
class Check:
    """A rule and its result."""

    score: str
    rule: str  # in words
    value: float | None  # the mean over seeds, or the candidate's score
    half_width: float | None  # of the 95 % interval of a mean
    count: int
    passed: bool

    def __str__(self) -> str:
        value = "missing" if self.value is None else f"{self.value:.4g}"
        spread = f" ± {self.half_width:.2g}" if self.half_width else ""
        word = "is" if self.passed else "must be"
        return f"{self.score} {value}{spread} {word} {self.rule}"


@dataclass(frozen=True)
class Evaluation:
    """The content of `evaluation.json`; without a candidate only reasons."""

    candidate: str = ""  # name of the trial
    run: str = ""  # its folder in the output of the trainer
    checks: list[Check] = field(default_factory=list)
    compared: list[Check] = field(default_factory=list)  # with `pushed`
    pushed: str = ""  # the version that it is compared with, if any
    reasons: list[str] = field(default_factory=list)  # against it

    @property
    def blessed(self) -> bool:
        return not self.reasons

    def describe(self) -> str:
        """Formats the verdict on one line."""
        if not self.blessed:
            return "not blessed: " + "; ".join(self.reasons)
        scores = ", ".join(map(str, self.checks))
        compared = f"; not worse than {self.pushed}" if self.pushed else ""
        return f"blessed {self.candidate}: {scores}{compared}"


def run(
    profile: str,
    runs_dir: str,
    export_dir: str,
    digest: str,
    work_dir: str,
    evaluation: dsl.Artifact,
    metrics: dsl.Metrics,
) -> bool:
    """Writes the evaluation; returns True if the candidate may be pushed."""
    with run_step("evaluator") as step:
        rules = parse_profile(profile).rules
        verdict = judge_candidate(rules, Path(runs_dir), export_dir, digest)
        content = {"blessed": verdict.blessed, **asdict(verdict)}
        file = place(evaluation, work_dir, "evaluation.json")
        files.write_text(file, json.dumps(content, indent=2) + "\n")
        evaluation.metadata["candidate"] = verdict.run
        for check in verdict.checks:
            if check.value is not None:
                metrics.log_metric(check.score, check.value)
        step.note, step.is_stopped = verdict.describe(), not verdict.blessed
        return verdict.blessed


def judge_candidate(
    rules: Rules, runs_dir: Path, export_dir: str | Path, digest: str
) -> Evaluation:
    """Judges the candidate of a sweep; `digest` is the hash of the examples."""
    try:
        trials = read_trials(runs_dir / LOGS / rules.sweep / "trials.csv")
        setting = choose_setting(trials, rules)
    except RunError as error:
        return Evaluation(reasons=[str(error)])
    name = str(setting["trial"].iloc[0])
    run = f"{LOGS}/{rules.sweep}/trials/{name}"
    checks, compared, before = check_thresholds(setting, rules), [], ""
    for version in list_versions(Path(export_dir, rules.push_as))[-1:]:
        compared = compare_with_pushed(setting, version, digest, rules)
        before = str(version) if compared else ""
    reasons = [str(c) for c in [*checks, *compared] if not c.passed]
    return Evaluation(name, run, checks, compared, before, reasons)


def read_trials(path: Path) -> DataFrame:
    """Reads a `trials.csv`: flags as `setting`, scores as numbers."""
    import pandas as pd

    try:
        table = pd.DataFrame(files.read_csv(path))
    except OSError as error:
        raise RunError(f"no table of trials: {error}") from error
    end = table.columns.get_loc("seed")
    flags, scores = table.columns[3:end], table.columns[end:]
    table[scores] = table[scores].apply(pd.to_numeric)
    table["setting"] = pd.Series(table[flags].to_dict("records"))
    return table[["trial", "status", "reason", "setting", *scores]]


def check_thresholds(setting: DataFrame, rules: Rules) -> list[Check]:
    """Compares means over seeds with the thresholds."""
    checks = []
    for score, rule in rules.list_thresholds().items():
        # None if a seed lacks its score.
        result = compute_statistics(list(setting.get(score, [None])))
        mean, _, low, high = list_numbers(result)
        passed = mean is not None and rule.accepts(mean)
        spread = None if low is None or high is None else (high - low) / 2
        row = (score, str(rule), mean, spread, len(setting), passed)
        checks.append(Check(*row))
    return checks


def compare_with_pushed(
    setting: DataFrame, pushed: Path, digest: str, rules: Rules
) -> list[Check]:
    """Compares the candidate with a record of scores on the same examples."""
    try:
        lineage = files.read_json(pushed / LINEAGE)
        scores = {  # named as in `trials.csv`; subsets have underscores, too
            f"{subset}_{name}": value
            for subset, values in lineage["metrics"].items()
            for name, value in values.items()
        }
    except (OSError, files.DamagedFileError, LookupError, AttributeError):
        return []
    if lineage.get("data") != digest:
        return []
    checks = []
    for name, rule in rules.list_thresholds().items():
        old = scores.get(name)
        new = setting[name].iloc[0] if name in setting else math.nan
        if old is None or new != new:
            continue  # the thresholds judge missing scores
        words = (
            f"not worse than {old:.4g} of {pushed.parent.name}/{pushed.name} "
            f"by more than {TOLERANCE:.0%}"
        )
        slack = TOLERANCE * abs(old)
        worse = [
            above(old + slack).accepts(new) and math.isfinite(rule.high),
            below(old - slack).accepts(new) and math.isfinite(rule.low),
        ]
        checks.append(Check(name, words, float(new), None, 1, not any(worse)))
    return checks
