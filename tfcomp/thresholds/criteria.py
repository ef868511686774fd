"""Scores that have a target, and when it is reached."""

from __future__ import annotations

import math

from tfcomp.config.errors import ConfigError
from tfcomp.thresholds.lists import split_list

# Name of a score (see `tfcomp.analysis.scores`) to whether more is better.
CRITERIA = {"position_accuracy": True, "relative_mse": False}


def is_reached(criterion: str, score: float | None, target: float) -> bool:
    """Whether a score is at least as good as its target.

    A score that does not exist (training diverged) reaches nothing.
    """
    if score is None:
        return False
    return score >= target if CRITERIA[criterion] else score <= target


def parse_targets(criterion: str, target: str) -> dict[str, float]:
    """Criterion to target, from two lists of the same length.

    Raises:
        ConfigError: For an unknown criterion, or targets that do not fit.
    """
    names = split_list("criterion", criterion)
    for name in names:
        if name not in CRITERIA:
            rule = f"must be among: {', '.join(CRITERIA)}"
            raise ConfigError("criterion", rule, name)
    texts = target.split(",")
    if len(texts) != len(names):
        rule = f"must have a number for each criterion, {len(names)} in all"
        raise ConfigError("target", rule, target)
    pairs = zip(names, texts, strict=True)
    return {name: _parse_target(name, text.strip()) for name, text in pairs}


def _parse_target(criterion: str, text: str) -> float:
    highest = 1 if CRITERIA[criterion] else math.inf
    try:
        target = float(text)
    except ValueError as error:
        raise ConfigError("target", "must be numbers", text) from error
    if not (0 < target <= highest and math.isfinite(target)):
        top = " and at most 1" if CRITERIA[criterion] else " and finite"
        rule = f"must be greater than 0{top} for {criterion}"
        raise ConfigError("target", rule, text)
    return target
