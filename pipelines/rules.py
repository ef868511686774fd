"""Rules by which a candidate is chosen among trials, and blessed.

An ID error alone chooses the candidate. A choice by an OOD score would use the
held-out combinations to select the model, which makes its OOD scores invalid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import RunError
from tfcomp.statistics.verdicts import Rule
from tfcomp.storage.files import read_csv

if TYPE_CHECKING:
    from pandas import DataFrame


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
        """Returns True if a trial has the flags of `setting`."""
        return all(
            name in flags and _read_value(flags[name]) == _read_value(value)
            for name, value in self.setting.items()
        )

    def list_thresholds(self) -> dict[str, Rule]:
        """Returns the rule of each score, in the order of the file."""
        return {
            score: Rule(
                bounds.get("above", -math.inf), bounds.get("below", math.inf)
            )
            for score, bounds in self.thresholds.items()
        }


def make_rules(content: Mapping[str, Any]) -> Rules:
    """Makes rules from `profile.toml`; a RunError names what is invalid."""
    try:
        rules = Rules(**content)
    except TypeError as error:  # names that are missing or unknown
        reason = str(error).removeprefix("Rules.__init__() ")
        raise RunError(f"--profile: profile.toml: {reason}") from error
    for name, (kind, words) in _KINDS.items():
        if not isinstance(value := getattr(rules, name), kind):
            rule = f"{name} must be {words}, got {value!r}"
            raise RunError(f"--profile: {rule}")
    if not rules.push_as.strip(".") or set(rules.push_as) & set("/\\\0"):
        rule = f"must be a plain name without a path, got {rules.push_as!r}"
        raise RunError(f"--profile: push_as {rule}")
    if not rules.choose_by.startswith("id_"):
        rule = "must be an ID score (an OOD score would leak)"
        raise RunError(f"--profile: choose_by {rule}, got {rules.choose_by!r}")
    bounds = rules.thresholds.values()
    if not bounds or not all(map(_is_bounds, bounds)):
        rule = "must name scores with bounds, as {id_mse = {below = 0.05}}"
        raise RunError(f"--profile: thresholds {rule}, got {rules.thresholds}")
    return rules


_KINDS: dict[str, tuple[Any, str]] = {
    "push_as": (str, "a name"),
    "sweep": (str, "the --run_name of a sweep"),
    "thresholds": (dict, "a table of scores"),
    "setting": (dict, "a table of flags, as {depth = 4}"),
    "min_seeds": (int, "an integer"),
    "choose_by": (str, "the name of a score"),
    "tolerance": (int | float, "a number"),
}


def _is_bounds(bounds: object) -> bool:
    return (
        isinstance(bounds, dict)
        and bool(bounds)
        and set(bounds) <= {"below", "above"}
        and all(isinstance(bound, int | float) for bound in bounds.values())
    )


def _read_value(value: object) -> float | str:
    # A number in a profile is text in a table: 0 and 0.0 are equal.
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def read_trials(path: Path) -> DataFrame:
    """Reads a `trials.csv`; a RunError if it is absent.

    Returns:
        A row for each trial: `trial`, `status`, `reason`, `setting` (its varied
        flags), `seed`, and scores as numbers.
    """
    import pandas as pd

    try:
        table = pd.DataFrame(read_csv(path))
    except OSError as error:
        raise RunError(f"no table of trials: {error}") from error
    end = table.columns.get_loc("seed")
    flags, scores = table.columns[3:end], table.columns[end:]
    table[scores] = table[scores].apply(pd.to_numeric)
    table["setting"] = pd.Series(table[flags].to_dict("records"))
    return table[["trial", "status", "reason", "setting", *scores]]


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
    complete = [group for group in groups if len(group) >= rules.min_seeds]
    if not complete:
        most = max(map(len, groups), default=0)
        reasons = [reason for reason in trials["reason"] if reason]
        raise RunError(
            f"min_seeds is {rules.min_seeds}, but a setting of {rules.sweep} "
            f"has at most {most} finished trials with {rules.choose_by}"
            + (f"; one failed: {reasons[0]}" if reasons else "")
        )
    best = min(complete, key=lambda group: group["error"].mean())
    return best.sort_values("error", kind="stable")
