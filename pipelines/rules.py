"""Rules by which a candidate is chosen among trials, and blessed.

An ID error alone chooses the candidate. A choice by an OOD score would use the
held-out combinations to select the model, which makes its OOD scores invalid.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
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
    unknown = set(content) - {field.name for field in dataclasses.fields(Rules)}
    missing = {"push_as", "sweep", "thresholds"} - set(content)
    if unknown or missing:
        word = "has no" if missing else "must not have"
        names = ", ".join(sorted(missing or unknown))
        raise RunError(f"--profile: profile.toml {word} {names}")
    rules = Rules(**content)
    for name, (is_valid, rule) in _CHECKS.items():
        value = getattr(rules, name)
        if not is_valid(value):
            raise RunError(f"--profile: {name} {rule}, got {value!r}")
    return rules


def _is_bounds(bounds: object) -> bool:
    return (
        isinstance(bounds, dict)
        and bool(bounds)
        and set(bounds) <= {"below", "above"}
        and all(map(_is_number, bounds.values()))
    )


def _is_number(value: object) -> bool:
    # True is an integer to Python, and NaN equals nothing.
    return type(value) in (int, float) and value == value


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "push_as": (
        lambda name: (
            isinstance(name, str)
            and name not in ("", ".", "..")
            and not set(name) & set("/\\\0")
        ),
        "must be a plain name without a path",
    ),
    "setting": (
        lambda table: isinstance(table, dict),
        "must be a table of flags, such as {depth = 4}",
    ),
    "choose_by": (
        lambda score: str(score).startswith("id_"),
        "must be an ID score (an OOD score would leak)",
    ),
    "min_seeds": (
        lambda number: type(number) is int and number >= 1,
        "must be an integer of at least 1",
    ),
    "tolerance": (
        lambda number: _is_number(number) and number >= 0,
        "must be a number of at least 0",
    ),
    "thresholds": (
        lambda table: (
            isinstance(table, dict)
            and bool(table)
            and all(map(_is_bounds, table.values()))
        ),
        "must name scores with bounds, such as id_relative_mse = "
        "{below = 0.05}",
    ),
}


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
