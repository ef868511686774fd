"""Which trial of a sweep may become the model that is pushed.

Chosen by an ID error alone: choosing by OOD scores would use the held-out
combinations to select the model, and their scores would prove nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pipelines.rules import Rules
from tfcomp.config.errors import RunError

FIRST_COLUMNS = ("trial", "status", "reason")
Setting = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TrialRow:
    """One row of `trials.csv`.

    Attributes:
        name: The trial's hash.
        reason: Why it failed; empty if it did not.
        is_finished: Whether it has scores.
        setting: Its varied flags and their values.
        seed: Its seed.
        scores: Its scores; None where a score does not exist.
    """

    name: str
    reason: str
    is_finished: bool
    setting: Setting
    seed: int
    scores: dict[str, float | None]


def read_trials(path: Path) -> list[TrialRow]:
    """The rows of a `trials.csv`.

    Raises:
        RunError: If there is none.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = list(reader.fieldnames or ())
    except OSError as error:
        raise RunError(f"no table of trials: {error}") from error
    return [_read_row(row, columns) for row in rows]


def choose_setting(trials: Sequence[TrialRow], rules: Rules) -> list[TrialRow]:
    """The finished trials of the declared setting, or of the best one.

    Raises:
        RunError: If there are none that can be chosen.
    """
    groups: dict[Setting, list[TrialRow]] = {}
    for trial in trials:
        if has_setting(dict(trial.setting), rules.setting):
            groups.setdefault(trial.setting, []).append(trial)
    if not groups:
        raise RunError(
            f"the sweep {rules.sweep} has no trials with {rules.setting}"
        )
    able = [
        finished
        for group in groups.values()
        if len(finished := _list_finished(group, rules)) >= rules.min_seeds
    ]
    if not able:
        raise RunError(_explain_absence(trials, rules))
    return min(able, key=lambda group: fmean(_list_errors(group, rules)))


def choose_trial(setting: Sequence[TrialRow], rules: Rules) -> TrialRow:
    """The trial of a setting with the lowest ID error."""
    errors = _list_errors(setting, rules)
    return setting[errors.index(min(errors))]


def has_setting(setting: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a trial has some flags; 0 in a profile is 0.0 in a table."""
    return all(
        name in setting
        and _read_value(str(setting[name])) == _read_value(str(value))
        for name, value in wanted.items()
    )


def _read_value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _list_finished(group: Sequence[TrialRow], rules: Rules) -> list[TrialRow]:
    return [
        trial
        for trial in group
        if trial.is_finished and trial.scores.get(rules.choose_by) is not None
    ]


def _list_errors(group: Sequence[TrialRow], rules: Rules) -> list[float]:
    return [trial.scores[rules.choose_by] or 0.0 for trial in group]


def _explain_absence(trials: Sequence[TrialRow], rules: Rules) -> str:
    finished = sum(trial.is_finished for trial in trials)
    reasons = [trial.reason for trial in trials if trial.reason]
    line = (
        f"no setting of {rules.sweep} has {rules.min_seeds} finished trials "
        f"with a score {rules.choose_by}, {finished} of {len(trials)} trials "
        "are finished"
    )
    return line + (f"; one failed: {reasons[0]}" if reasons else "")


def _read_row(row: dict[str, str], columns: Sequence[str]) -> TrialRow:
    seed_column = columns.index("seed")
    varied = columns[len(FIRST_COLUMNS) : seed_column]
    return TrialRow(
        name=row["trial"],
        reason=row["reason"],
        is_finished=row["status"] == "finished",
        setting=tuple((name, row[name]) for name in varied),
        seed=int(row["seed"]),
        scores={
            name: float(row[name]) if row[name] else None
            for name in columns[seed_column + 1 :]
        },
    )
