"""One picture of all verdicts: every deciding part against its margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

from tfcomp.studies.claims.judgement import ClaimResult
from tfcomp.studies.claims.verdict import Part, Rule, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "Every part that decides a claim and has an interval, with its 95 % "
    "interval. 0 is the bound of its rule, to the right is what the claim "
    "says, and 1 is farther by as much as the bound is from 0 (of a rule with "
    "two bounds: its middle)."
)
SIZE = (12.8, 7.2)  # inches: a screen
NEAREST = 2.0  # from here on the axis is logarithmic
LETTERS = 52


@dataclass(frozen=True)
class Row:
    """A part as it is drawn: where its interval lies in units of its margin."""

    label: str
    verdict: str
    low: float
    mean: float
    high: float


def list_rows(results: Sequence[ClaimResult]) -> list[Row]:
    """The deciding parts with an interval, in the order of the claims."""
    return [
        _make_row(result, part)
        for result in results
        for part in result.parts
        if part.decides and (found := part.estimate)
        if None not in (found.low, found.high)
    ]


def _make_row(result: ClaimResult, part: Part) -> Row:
    found = part.estimate
    is_valid = result.verdict != Verdict.NOT_VALID
    verdict = part.verdict if is_valid else result.verdict
    label = f"{result.claim.name} {part.label}"
    # Of a rule with two bounds the middle is farthest from what is outside.
    middle = (part.rule.low + part.rule.high) / 2
    turns = [middle] if found.low < middle < found.high else []
    ends = [to_margins(x, part.rule) for x in (found.low, found.high, *turns)]
    mean = to_margins(found.mean, part.rule)
    return Row(label, str(verdict), min(ends), mean, max(ends))


def to_margins(number: float, rule: Rule) -> float:
    """How far a number is beyond the bound of a rule, in units of that.

    Positive if the number meets the rule. The unit is the distance of the
    bound from 0, of a rule with two bounds half of their distance.
    """
    if rule.outside or not math.isinf(rule.low) and not math.isinf(rule.high):
        half = (rule.high - rule.low) / 2
        inside = half - abs(number - (rule.low + half))
        return (-inside if rule.outside else inside) / (half or 1.0)
    if math.isinf(rule.high):
        return (number - rule.low) / (abs(rule.low) or 1.0)
    return (rule.high - number) / (abs(rule.high) or 1.0)


def draw_margins(results: Sequence[ClaimResult]) -> Figure | None:
    """The picture; None if no part has an interval."""
    from matplotlib.figure import Figure

    rows = list_rows(results)
    if not rows:
        return None
    figure = Figure(figsize=SIZE, layout="constrained")
    half = -(-len(rows) // 2)
    panels = figure.subplots(1, 2)
    for axes, shown in zip(panels, (rows[:half], rows[half:]), strict=True):
        _draw_panel(axes, shown, half)
    handles = {
        text: handle
        for axes in panels
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
    )
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Row], height: int) -> None:
    from tfcomp.figures.forest_plots import KIND_COLORS

    for place, row in enumerate(rows):
        axes.errorbar(
            row.mean,
            place,
            # A mean of logarithms can lie outside of an interval of the mean.
            xerr=[[max(0, row.mean - row.low)], [max(0, row.high - row.mean)]],
            fmt="o" if row.verdict == "reproduced" else "s",
            color=KIND_COLORS.get(row.verdict, "0.4"),
            markersize=4,
            label=row.verdict,
        )
    axes.axvline(0.0, color="0.3", linewidth=1)
    axes.axvspan(0.0, 1e6, color="0.93", zorder=0)
    axes.set_xscale("symlog", linthresh=NEAREST)
    ends = [x for row in rows for x in (row.low, row.high)] or [0.0]
    axes.set_xlim(min(-1.0, *ends) * 1.3, max(1.0, *ends) * 1.3)
    axes.set_ylim(height - 0.4, -0.6)
    axes.xaxis.set_major_formatter("{x:g}")
    labels = [shorten(row.label, LETTERS, placeholder=" …") for row in rows]
    axes.set_yticks(range(len(rows)), labels)
    axes.tick_params(axis="y", labelsize=7, length=0)
    axes.set_xlabel("distance to the bound of the rule, in margins")
    axes.grid(axis="y", color="0.9", linewidth=0.5)
