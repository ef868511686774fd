"""The rules by which a model is chosen among trials, and blessed.

A candidate is chosen by an ID error alone. Choosing by an OOD score would use
the held-out combinations to select the model, and its OOD scores would then
prove nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from tfcomp.config.errors import RunError
from tfcomp.statistics.measure import find_measure
from tfcomp.storage.files import DamagedFileError, read_csv


@dataclass(frozen=True)
class Threshold:
    """A bound for the mean of a score, a column of `trials.csv`, over seeds."""

    score: str
    bound: float
    is_upper: bool  # the score must be below it, rather than above

    def passes(self, value: float | None) -> bool:
        """Whether a value is within the bound; a missing one is not."""
        if value is None:
            return False
        return value < self.bound if self.is_upper else value > self.bound

    def is_worse(self, new: float, old: float, tolerance: float) -> bool:
        """Whether a score is worse by more than a part of the old score."""
        slack = tolerance * abs(old)
        return new > old + slack if self.is_upper else new < old - slack

    def __str__(self) -> str:
        return f"{'below' if self.is_upper else 'above'} {self.bound:g}"


@dataclass(frozen=True)
class Rules:
    """When a model may be pushed, to `<export_dir>/<push_as>/<version>`.

    The candidate is a trial of the sweep. It has the flags of the setting or,
    if that is empty, those that `choose_by` chooses.
    """

    push_as: str
    sweep: str
    thresholds: dict[str, dict[str, float]]  # for means over the seeds
    setting: dict[str, Any] = field(default_factory=dict)
    min_seeds: int = 1  # trials of the setting that must be finished
    choose_by: str = "id_relative_mse"  # the setting, and a trial of it
    # How much worse than the model that was pushed before the candidate may be,
    # as a part of each score.
    tolerance: float = 0.1

    def fit_setting(self, flags: Mapping[str, Any]) -> bool:
        """Whether a trial has the flags of `setting`."""
        return all(
            name in flags and _read_value(flags[name]) == _read_value(value)
            for name, value in self.setting.items()
        )

    def list_thresholds(self) -> list[Threshold]:
        """The thresholds, in the order of the file."""
        return [
            Threshold(score, float(bound), kind == "below")
            for score, bounds in self.thresholds.items()
            for kind, bound in bounds.items()
        ]


def make_rules(content: Mapping[str, Any]) -> Rules:
    """Rules from `profile.toml`; RunError for what is missing or wrong."""
    unknown = set(content) - {field.name for field in fields(Rules)}
    missing = {"push_as", "sweep", "thresholds"} - set(content)
    if unknown or missing:
        word = "has no" if missing else "must not have"
        names = ", ".join(sorted(missing or unknown))
        raise RunError(f"--profile: profile.toml {word} {names}")
    rules = Rules(**content)
    _check(
        isinstance(rules.push_as, str)
        and rules.push_as not in ("", ".", "..")
        and not set(rules.push_as) & set("/\\\0"),
        "push_as must be a plain name without a path",
        rules.push_as,
    )
    rule = "setting must be a table of flags, such as {depth = 4}"
    _check(isinstance(rules.setting, dict), rule, rules.setting)
    rule = "choose_by must be an ID score (an OOD score would leak)"
    _check(str(rules.choose_by).startswith("id_"), rule, rules.choose_by)
    _check_score(rules.choose_by)
    seeds, tolerance = rules.min_seeds, rules.tolerance
    rule = "min_seeds must be an integer of at least 1"
    _check(type(seeds) is int and seeds >= 1, rule, seeds)
    rule = "tolerance must be a number of at least 0"
    _check(_is_number(tolerance) and tolerance >= 0, rule, tolerance)
    example = "such as id_relative_mse = {below = 0.05}"
    rule = f"thresholds must name scores with bounds, {example}"
    found = rules.thresholds
    _check(isinstance(found, dict) and found, rule, found)
    for score, bounds in found.items():
        _check_score(score)
        _check(
            isinstance(bounds, dict)
            and bounds
            and set(bounds) <= {"below", "above"}
            and all(map(_is_number, bounds.values())),
            rule,
            {score: bounds},
        )
    return rules


def _check_score(name: str) -> None:
    # Other names are those of measures, and a sweep may have any measure.
    measure = find_measure(name)
    _check(
        (measure and measure.per == "image")
        or not name.startswith(("id_", "ood_")),
        "a score must be such as id_relative_mse or ood_position_accuracy",
        name,
    )


def _check(is_kept: object, rule: str, value: object) -> None:
    if not is_kept:
        raise RunError(f"--profile: {rule}, got {value!r}")


def _read_value(value: object) -> float | str:
    # A number in a profile is text in a table: 0 and 0.0 are the same.
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _is_number(value: object) -> bool:
    # True and false are integers to Python; NaN equals nothing.
    return type(value) in (int, float) and value == value


@dataclass(frozen=True)
class TrialRow:
    """One row of `trials.csv`."""

    name: str
    reason: str  # why it failed; empty if it did not
    is_finished: bool
    setting: dict[str, str]  # its varied flags and their values, as text
    seed: int
    scores: dict[str, float | None]


def read_trials(path: Path) -> list[TrialRow]:
    """The rows of a `trials.csv`; RunError if it is absent or damaged."""
    try:
        return [_read_row(row) for row in read_csv(path)]
    except OSError as error:
        raise RunError(f"no table of trials: {error}") from error
    except (LookupError, ValueError) as error:
        raise DamagedFileError(path, error) from error


def _read_row(row: dict[str, str]) -> TrialRow:
    columns = list(row)  # trial, status, reason, flags, seed, scores
    seed = columns.index("seed")
    return TrialRow(
        name=row["trial"],
        reason=row["reason"],
        is_finished=row["status"] == "finished",
        setting={name: row[name] for name in columns[3:seed]},
        seed=int(row["seed"]),
        scores={
            name: float(row[name]) if row[name] else None
            for name in columns[seed + 1 :]
        },
    )


def choose_setting(trials: Sequence[TrialRow], rules: Rules) -> list[TrialRow]:
    """The finished trials of the declared or the best setting; or RunError."""
    groups: dict[str, list[TrialRow]] = {}
    for trial in trials:
        if rules.fit_setting(trial.setting):
            group = groups.setdefault(repr(trial.setting), [])
            if trial.is_finished and _get_error(trial, rules) < math.inf:
                group.append(trial)
    if not groups:
        raise RunError(
            f"the sweep {rules.sweep} has no trials with {rules.setting}"
        )
    able = [g for g in groups.values() if len(g) >= rules.min_seeds]
    if not able:
        finished = sum(trial.is_finished for trial in trials)
        reason = next((trial.reason for trial in trials if trial.reason), "")
        raise RunError(
            f"no setting of {rules.sweep} has {rules.min_seeds} finished "
            f"trials with a score {rules.choose_by}, {finished} of "
            f"{len(trials)} trials are finished"
            + (f"; one failed: {reason}" if reason else "")
        )
    return min(
        able, key=lambda group: fmean(_get_error(t, rules) for t in group)
    )


def choose_trial(setting: Sequence[TrialRow], rules: Rules) -> TrialRow:
    """The trial of a setting with the lowest ID error."""
    return min(setting, key=lambda trial: _get_error(trial, rules))


def _get_error(trial: TrialRow, rules: Rules) -> float:
    """The ID error that decides; infinite, so never the best, if missing."""
    error = trial.scores.get(rules.choose_by)
    return math.inf if error is None or math.isnan(error) else error
