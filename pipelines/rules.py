"""Rules by which a candidate is chosen among trials, and blessed.

A candidate is chosen by an ID error alone. A choice by an OOD score would use
the held-out combinations to select the model, and its OOD scores would then
prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import RunError
from tfcomp.storage.files import DamagedFileError, read_csv

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Threshold:
    """A bound for the mean of a score, a column of `trials.csv`, over seeds."""

    score: str
    bound: float
    is_upper: bool  # the score must be below it, rather than above

    def passes(self, value: float | None) -> bool:
        """Checks that a value is within the bound; a missing one is not."""
        if value is None:
            return False
        return value < self.bound if self.is_upper else value > self.bound

    def is_worse(self, new: float, old: float, tolerance: float) -> bool:
        """Checks whether a score is worse by more than a part of the old."""
        slack = tolerance * abs(old)
        return new > old + slack if self.is_upper else new < old - slack

    def __str__(self) -> str:
        return f"{'below' if self.is_upper else 'above'} {self.bound:g}"


@dataclass(frozen=True)
class Rules:
    """When a model may be pushed, to `<export_dir>/<push_as>/<version>`.

    The candidate is a trial of the sweep. It has the flags of `setting`, or,
    if that is empty, the setting with the lowest mean of `choose_by`.
    """

    push_as: str
    sweep: str
    thresholds: dict[str, dict[str, float]]  # for means over seeds
    setting: dict[str, Any] = field(default_factory=dict)
    min_seeds: int = 1  # finished trials that a setting must have
    choose_by: str = "id_relative_mse"
    tolerance: float = 0.1  # how much worse than the last pushed, relatively

    def fits(self, flags: Mapping[str, Any]) -> bool:
        """Checks whether a trial has the flags of `setting`."""
        return all(
            name in flags and _read_value(flags[name]) == _read_value(value)
            for name, value in self.setting.items()
        )

    def list_thresholds(self) -> list[Threshold]:
        """Lists the thresholds, in the order of the file."""
        return [
            Threshold(score, float(bound), kind == "below")
            for score, bounds in self.thresholds.items()
            for kind, bound in bounds.items()
        ]


def make_rules(content: Mapping[str, Any]) -> Rules:
    """Makes rules from `profile.toml`; a RunError names what is invalid."""
    unknown = set(content) - {field.name for field in fields(Rules)}
    missing = {"push_as", "sweep", "thresholds"} - set(content)
    if unknown or missing:
        word = "has no" if missing else "must not have"
        names = ", ".join(sorted(missing or unknown))
        raise RunError(f"--profile: profile.toml {word} {names}")
    rules = Rules(**content)
    name = rules.push_as
    is_plain = isinstance(name, str) and not set(name) & set("/\\\0")
    _check(
        is_plain and name not in ("", ".", ".."),
        "push_as must be a plain name without a path",
        name,
    )
    rule = "setting must be a table of flags, such as {depth = 4}"
    _check(isinstance(rules.setting, dict), rule, rules.setting)
    rule = "choose_by must be an ID score (an OOD score would leak)"
    _check(str(rules.choose_by).startswith("id_"), rule, rules.choose_by)
    seeds, tolerance = rules.min_seeds, rules.tolerance
    rule = "min_seeds must be an integer of at least 1"
    _check(type(seeds) is int and seeds >= 1, rule, seeds)
    rule = "tolerance must be a number of at least 0"
    _check(_is_number(tolerance) and tolerance >= 0, rule, tolerance)
    bounds = rules.thresholds
    rule = (
        "thresholds must name scores with bounds, such as id_relative_mse = "
        "{below = 0.05}"
    )
    _check(isinstance(bounds, dict) and bounds, rule, bounds)
    for score, bound in bounds.items():
        is_bound = isinstance(bound, dict) and set(bound) <= {"below", "above"}
        is_good = is_bound and bound and all(map(_is_number, bound.values()))
        _check(is_good, rule, {score: bound})
    return rules


def _check(is_kept: object, rule: str, value: object) -> None:
    if not is_kept:
        raise RunError(f"--profile: {rule}, got {value!r}")


def _read_value(value: object) -> float | str:
    # A number in a profile is text in a table: 0 and 0.0 are equal.
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _is_number(value: object) -> bool:
    # True is an integer to Python, and NaN equals nothing.
    return type(value) in (int, float) and value == value


def read_trials(path: Path) -> DataFrame:
    """Reads a `trials.csv`; a RunError if it is absent or damaged.

    Returns:
        A row for each trial: `trial`, `status`, `reason`, `setting` (its varied
        flags), `seed`, and scores as numbers.
    """
    import pandas as pd

    try:
        table = pd.DataFrame(read_csv(path))
        end = table.columns.get_loc("seed")
        flags, scores = table.columns[3:end], table.columns[end:]
        table[scores] = table[scores].apply(pd.to_numeric)
        table["setting"] = pd.Series(table[flags].to_dict("records"))
        return table[["trial", "status", "reason", "setting", *scores]]
    except OSError as error:
        raise RunError(f"no table of trials: {error}") from error
    except (LookupError, ValueError, TypeError) as error:
        raise DamagedFileError(path, error) from error


def choose_setting(trials: DataFrame, rules: Rules) -> DataFrame:
    """Returns the finished trials of the declared or the best setting.

    The first row is the candidate, the trial with the lowest ID error. A
    RunError says why there is none.
    """
    rows = trials[[rules.fits(flags) for flags in trials["setting"]]]
    if rows.empty:
        rule = f"has no trials with {rules.setting}"
        raise RunError(f"the sweep {rules.sweep} {rule}")
    rows = rows.assign(error=rows.get(rules.choose_by, math.nan))
    rows = rows[(rows["status"] == "finished") & rows["error"].notna()]
    groups = [g for _, g in rows.groupby(rows["setting"].map(repr), sort=False)]
    able = [group for group in groups if len(group) >= rules.min_seeds]
    if not able:
        reasons = [reason for reason in trials["reason"] if reason]
        finished = (trials["status"] == "finished").sum()
        raise RunError(
            f"no setting of {rules.sweep} has {rules.min_seeds} finished "
            f"trials with a score {rules.choose_by}, {finished} of "
            f"{len(trials)} trials are finished"
            + (f"; one failed: {reasons[0]}" if reasons else "")
        )
    best = min(able, key=lambda group: group["error"].mean())
    return best.sort_values("error", kind="stable")
