"""Claims, sweeps and threshold studies as text and Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.claims.claim import select_fitted
from reproduction.claims.evidence import (
    FRESH,
    TOTAL,
    UNSEEN,
    Evidence,
    ThresholdStudy,
)
from reproduction.claims.parts import Part, combine_parts
from reproduction.groups import Group
from reproduction.verdicts import Rule, Verdict, combine
from tfcomp.statistics import seed_statistics
from tfcomp.statistics.estimates import Estimate

if TYPE_CHECKING:
    from pandas import DataFrame

IN_PARTS = "in parts"
PLANS = {FRESH: "fresh", UNSEEN: "unseen"}
Verdicts = Mapping[Verdict, Sequence[str]]  # with the settings of each
SCORES = {  # by the heading of their column
    "ID relative MSE": "id/relative_mse",
    "OOD relative MSE": "ood/relative_mse",
    "OOD MSE": "ood/mse",
    "OOD positions in place (%)": "ood/position_accuracy",
}
ROW = ["kind", "region", "criterion"]


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
    """Returns the numbers that decide, by quantity and by side of the rule."""
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
    """Returns the deciding parts that were run, and those that are awaited."""
    return [
        part
        for part in parts
        if part.is_awaited
        or (part.decides and part.verdict is not Verdict.NOT_RUN)
    ]


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


def make_score_tables(evidence: Evidence) -> dict[str, str]:
    """Returns a table in Markdown for each sweep, by its name."""
    sweeps: dict[str, list[Group]] = {}
    for group in evidence.groups:
        names = {seed: run["study"] for seed, run in group.runs.items()}
        for name in dict.fromkeys(names.values()):
            kept = group.keep([seed for seed in names if names[seed] == name])
            sweeps.setdefault(name, []).append(kept)
    return {name: format_sweep(found) for name, found in sorted(sweeps.items())}


def format_sweep(groups: Sequence[Group]) -> str:
    """Returns the table of some runs: a row a setting, fitted ones if any."""
    names = seed_statistics.choose_flags([group.flags for group in groups])

    def order(group: Group) -> list[tuple[bool, Any]]:
        values = [group.flags[name] for name in names]
        return [(isinstance(value, str), value) for value in values]

    rows = [["setting", "fitted", *SCORES]]
    for group in sorted(groups, key=order):
        fitted = select_fitted(group)
        count = f"{len(fitted)} of {len(group)}"
        if fitted.num_restarted:
            count += f", {fitted.num_restarted} started again"
        label = seed_statistics.make_label(group.flags, names)
        if len(names) == 1:
            label = label.removeprefix(f"{names[0]} ")
        shown = fitted if len(fitted) else group
        rows.append(
            [label, count, *(_average(shown, s) for s in SCORES.values())]
        )
    return seed_statistics.format_rows(rows)


def _average(group: Group, score: str) -> str:
    values = group.get(score).dropna().tolist()
    if score == "ood/position_accuracy":
        values = [100 * value for value in values]
        return _format_spread(fmean(values), values) if values else "–"
    is_known = values and min(values) > 0
    return _format_spread(geometric_mean(values), values) if is_known else "–"


def _format_spread(mean: float, values: Sequence[float]) -> str:
    """Formats a mean and extremes, as `1.2 (0.8 to 1.9)` or `100 (all)`."""
    low, high = format_number(min(values)), format_number(max(values))
    ends = "all" if low == high else f"{low} to {high}"
    return f"{format_number(mean)} ({ends})"


def format_study(study: ThresholdStudy) -> str:
    """Returns the table of a threshold study, a row a kind of training set."""
    found = study.thresholds
    sizes = sorted(found["grid_size"].unique())
    heads = [f"N = {size:g}" for size in sizes]
    rows = [["training set", "held out", "criterion", *heads, "slope"]]
    for row, searches in found.groupby(ROW, sort=False):
        words = [str(word).replace("_", " ") for word in row]
        counts = [
            _format_searches(searches[searches["grid_size"] == size])
            for size in sizes
        ]
        table = study.slopes[study.slopes["quantity"] == TOTAL]
        law = table[(table[ROW] == list(row)).all(axis=1)]
        cells = law[["slope", "low", "high"]].to_numpy(dtype=float).ravel()
        numbers = cells[np.isfinite(cells)].tolist()
        slope, *interval = [format_number(n) for n in numbers] or ["–"]
        ends = f" [{', '.join(interval)}]" if interval else ""
        rows.append([*words, *counts, f"{slope}{ends}"])
    return seed_statistics.format_rows(rows)


def _format_searches(searches: DataFrame) -> str:
    """Formats counts as `74.1 (64 to 98)`; failed searches stand beside."""
    counts = searches.loc[searches["reached"].astype(bool), TOTAL].tolist()
    missed = len(searches) - len(counts)
    text = _format_spread(geometric_mean(counts), counts) if counts else "–"
    return text + (f", {missed} not reached" if missed else "")
