"""Parts of claims as text: numbers as they are shown, sentences, verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.verdicts import Rule, Verdict, combine
from tfcomp.studies.claims.evidence import FRESH, UNSEEN
from tfcomp.studies.claims.parts import Part, combine_parts

IN_PARTS = "in parts"
PLANS = {FRESH: "fresh", UNSEEN: "unseen"}
Verdicts = Mapping[Verdict, Sequence[str]]  # with the settings of each


def render_markdown(path: Path, shown: Mapping[str, Any]) -> str:
    """Renders a template in Markdown; its filter `cell` escapes a cell."""
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    signs = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;"})
    environment.filters["cell"] = lambda text: text.translate(signs)
    return environment.from_string(path.read_text("utf-8")).render(shown)


def format_number(value: float) -> str:
    """Formats three significant digits, or two of a tiny number."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3g}"


def format_estimate(estimate: Estimate | None) -> str:
    """Formats a number and its 95 % interval, as `0.82 [0.79, 0.85]`."""
    if estimate is None:
        return "–"
    text = _format_wins(estimate) or format_number(estimate.mean)
    if estimate.low is None or estimate.high is None:
        return text
    if estimate.low == estimate.high and estimate.count > 1:
        return f"{text} (all alike)"
    ends = f"{format_number(estimate.low)}, {format_number(estimate.high)}"
    return f"{text} [{ends}]"


def _format_wins(estimate: Estimate) -> str:
    """Formats a share as `4 of 5`; empty for other numbers."""
    wins = round(estimate.mean * estimate.count)
    return f"{wins} of {estimate.count}" if estimate.unit == "share" else ""


def format_count(estimate: Estimate | None) -> str:
    """Formats the number of seeds, or of sizes, behind an estimate."""
    if estimate is None:
        return "0"
    return f"{estimate.count}{' sizes' * (estimate.unit == 'sizes')}"


def describe_part(part: Part) -> str:
    """Formats a part in a line, as `donut, bump: 0.82 [0.79, 0.85], n = 5`."""
    count = format_count(part.estimate)
    text = f"{part.label}: {format_estimate(part.estimate)}, n = {count}"
    if part.is_fresh:
        text += f", {PLANS[part.round]} seeds"
    if part.fitted:
        text += f" ({part.fitted})"
    reason = part.reason.partition(":")[0]
    return f"{text}, {part.verdict}{f' ({reason})' if reason else ''}"


def describe_parts(parts: Sequence[Part]) -> str:
    """Returns the numbers that decide, by quantity and by side of the rule.

    As `OOD relative MSE is above 0.5 for bump (0.82) and ramp (0.98)`.
    """
    sides: dict[str, dict[str, list[str]]] = {}
    for part in select_shown(parts):
        found, text = part.estimate, part.of or part.label
        if found:
            text += f" ({_format_wins(found) or f'{found.mean:.2g}'})"
        by_side = sides.setdefault(part.quantity, {})
        by_side.setdefault(_describe_side(part), []).append(text)
    return ". ".join(
        f"{quantity[:1].upper()}{quantity[1:]}: "
        + "; ".join(f"{side} for {', '.join(n)}" for side, n in found.items())
        for quantity, found in sides.items()
    )


def _describe_side(part: Part) -> str:
    """Returns where the interval of a part lies, as `not above 0.5`."""
    if part.estimate is None or part.problem:
        return part.reason.partition(":")[0] or "unknown"
    words = _describe_rule(part.rule, part.estimate.trend is not None)
    if part.verdict is Verdict.UNDECIDED:
        return f"open whether {words}"
    return words if part.verdict is Verdict.REPRODUCED else f"not {words}"


def _describe_rule(rule: Rule, is_trend: bool) -> str:
    if is_trend:
        return "rising" if math.isinf(rule.high) else "falling"
    if rule.outside:
        return f"farther from 0 than {rule.high:g}"
    if math.isinf(rule.high):
        return f"above {rule.low:g}"
    if math.isinf(rule.low):
        return f"below {rule.high:g}"
    return f"between {rule.low:g} and {rule.high:g}"


def select_shown(parts: Sequence[Part]) -> list[Part]:
    """Returns the deciding parts that were run."""
    return [p for p in parts if p.decides and p.verdict is not Verdict.NOT_RUN]


def split_parts(parts: Sequence[Part]) -> Verdicts:
    """Returns the settings of deciding parts by verdict, if they differ."""
    found: dict[Verdict, list[str]] = {}
    deciding = [part for part in parts if part.decides]
    for name in dict.fromkeys(part.of or part.label for part in deciding):
        alike = [p for p in deciding if (p.of or p.label) == name]
        found.setdefault(combine_parts(alike)[0], []).append(name)
    return found if len(found) > 1 else {v: [] for v in found}


def summarize_verdicts(found: Verdicts) -> str:
    """Returns a verdict, or `in parts` if some settings are reproduced."""
    if len(found) < 2:
        return "".join(found)
    is_split = Verdict.REPRODUCED in found
    return IN_PARTS if is_split else str(combine([*found])[0])


def describe_verdicts(found: Verdicts) -> str:
    """Returns verdicts with the settings that they stand for."""
    return "; ".join(
        f"{verdict} ({', '.join(names)})" if names else str(verdict)
        for verdict, names in found.items()
    )
