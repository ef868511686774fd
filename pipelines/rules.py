"""The rules by which a model is chosen and blessed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tfcomp.config.errors import RunError
from tfcomp.statistics.measure import find_measure


@dataclass(frozen=True)
class Threshold:
    """A bound for the mean of a score over seeds.

    Attributes:
        score: A column of `trials.csv`, such as `id_relative_mse`.
        is_upper: Whether the score must be below it, rather than above.
    """

    score: str
    bound: float
    is_upper: bool

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
    """When a model may be pushed.

    Attributes:
        push_as: Name to push to, `<export_dir>/<push_as>/<version>`.
        sweep: The sweep that the candidate comes from.
        thresholds: Bounds for means over the seeds of the setting.
        setting: Varied flags that the candidate must have; if empty,
            `choose_by` chooses the setting.
        min_seeds: How many trials of the setting must be finished.
        choose_by: The ID error that chooses the setting and the trial.
            Choosing by an OOD score would leak the held-out combinations.
        tolerance: How much worse than the model that was pushed before the
            candidate may be, as a part of each score.
    """

    push_as: str
    sweep: str
    thresholds: dict[str, dict[str, float]]
    setting: dict[str, Any] = field(default_factory=dict)
    min_seeds: int = 1
    choose_by: str = "id_relative_mse"
    tolerance: float = 0.1

    def fit_setting(self, flags: Mapping[str, Any]) -> bool:
        """Whether a trial has the flags of `setting`.

        A number in a profile is text in a table: 0 and 0.0 are the same.
        """
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
    """Rules from the content of `profile.toml`.

    Raises:
        RunError: If something is missing, unknown or of the wrong kind.
    """
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
    _check(
        isinstance(rules.setting, dict),
        "setting must be a table of flags, such as {depth = 4}",
        rules.setting,
    )
    _check(
        str(rules.choose_by).startswith("id_"),
        "choose_by must be an ID score (an OOD score would leak)",
        rules.choose_by,
    )
    _check_score(rules.choose_by)
    _check(
        type(rules.min_seeds) is int and rules.min_seeds >= 1,
        "min_seeds must be an integer of at least 1",
        rules.min_seeds,
    )
    _check(
        _is_number(rules.tolerance) and rules.tolerance >= 0,
        "tolerance must be a number of at least 0",
        rules.tolerance,
    )
    _check_thresholds(rules.thresholds)
    return rules


def _check_thresholds(thresholds: Any) -> None:
    example = "such as id_relative_mse = {below = 0.05}"
    rule = f"thresholds must name scores with bounds, {example}"
    _check(isinstance(thresholds, dict) and thresholds, rule, thresholds)
    for score, bounds in thresholds.items():
        _check_score(score)
        _check(
            isinstance(bounds, dict)
            and bounds
            and set(bounds) <= {"below", "above"}
            and all(map(_is_number, bounds.values())),
            rule,
            {score: bounds},
        )


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
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _is_number(value: object) -> bool:
    # True and false are integers to Python; NaN equals nothing.
    return type(value) in (int, float) and value == value
