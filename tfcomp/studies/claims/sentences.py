"""Sentences on verdicts, computed from the parts that decide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.verdicts import Rule, Verdict
from tfcomp.studies.claims.parts import Part


def describe_parts(parts: Sequence[Part]) -> str:
    """Returns the numbers that decide, by quantity and by side of the rule.

    As `OOD relative MSE is above 0.5 for bump (0.82) and ramp (0.98)`.
    """
    sides: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        if part.decides and part.verdict is not Verdict.NOT_RUN:
            found = sides.setdefault(part.quantity, {})
            found.setdefault(describe_side(part), []).append(_describe(part))
    return ". ".join(
        f"{quantity[:1].upper()}{quantity[1:]}: "
        + "; ".join(f"{side} for {', '.join(n)}" for side, n in found.items())
        for quantity, found in sides.items()
    )


def describe_side(part: Part) -> str:
    """Returns where the interval of a part lies, as `not above 0.5`."""
    found, rule = part.estimate, part.rule
    if found is None or part.problem:
        return part.reason.partition(":")[0] or "unknown"
    if part.verdict is Verdict.UNDECIDED:
        return f"open whether {describe_rule(found, rule)}"
    is_met = part.verdict is Verdict.REPRODUCED
    return ("" if is_met else "not ") + describe_rule(found, rule)


def describe_rule(found: Estimate, rule: Rule) -> str:
    """Returns a rule as words that follow `is`."""
    if found.trend is not None:
        return "rising" if math.isinf(rule.high) else "falling"
    if rule.outside:
        return f"farther from 0 than {rule.high:g}"
    if math.isinf(rule.high):
        return f"above {rule.low:g}"
    if math.isinf(rule.low):
        return f"below {rule.high:g}"
    return f"between {rule.low:g} and {rule.high:g}"


def _describe(part: Part) -> str:
    found, label = part.estimate, part.of or part.label
    if found is None:
        return label
    if found.unit == "share":
        number = f"{round(found.mean * found.count)} of {found.count}"
    else:
        number = f"{found.mean:.2g}"
    return f"{label} ({number})"
