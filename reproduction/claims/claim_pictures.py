"""The picture of all claims: a row each, by the paper's test and by ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.claims.controls import Kind
from reproduction.claims.evidence import Evidence
from reproduction.claims.parts import Part, judge_checks
from reproduction.claims.result_text import format_number
from reproduction.verdicts import Rule, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reproduction.claims.judgement import ClaimResult

OVERVIEW = (
    "The claims of the paper, with its sentences, by the number that the paper "
    "states and by our stricter test. A line is a part that decides, with its "
    "95 % interval and its mean at the right. 0 is the bound of its rule; to "
    "the right is what the claim says; 1 is as far beyond the bound as the "
    "bound is from 0 (of two bounds: their middle; of a bound of 0: the "
    "largest mean of the claim). Crosses are the planted negative: one of a "
    "claim's must lie left of 0. Trends have no interval and are not drawn. "
    "Dashed and hollow: the measure has a known fault (circles), or the test "
    "is not valid (squares), so that the part decides nothing."
)
AT_FAULT = "measure at fault"
TITLES = "as the paper states it", "our stricter test"
NEAREST, FURTHEST = 2.0, 60.0  # the axis is logarithmic between the two
LINE, LETTERS, LABEL = 0.125, 58, 26  # inches, and letters of a line
# Inches. A panel has labels of its rows to the left, and means to the right.
WORDS, LABELS, PANEL, MEANS = 3.4, 1.3, 2.0, 0.55
KIND_COLORS = {
    "reproduced": "#00734c",
    "refuted": "#b3261e",
    "undecided": "#946200",
    "not run": "#666666",
}


@dataclass(frozen=True)
class Row:
    """A part as it is drawn: where its interval lies in units of its margin."""

    part: Part
    verdict: str
    low: float
    mean: float
    high: float
    negative: float | None = None


def list_rows(
    result: ClaimResult, parts: Sequence[Part], negatives: Sequence[Part] = ()
) -> list[Row]:
    """Returns the deciding parts that have an interval, in their order."""
    planted = {(p.label, p.quantity): p.estimate for p in negatives}
    shown = [(p, p.estimate) for p in parts if p.decides and p.estimate]
    sizes = [abs(e.mean) for _, e in shown if e.low is not None]
    unit = max(sizes, default=0.0) or 1.0
    rows = []
    for part, found in shown:
        rule, other = part.rule, planted.get((part.label, part.quantity))
        if found.low is None or found.high is None:
            continue
        # Of two bounds, the middle is farthest from the outside.
        middle = (rule.low + rule.high) / 2
        turns = [middle] if found.low < middle < found.high else []
        numbers = found.low, found.high, *turns
        ends = [to_margins(number, rule, unit) for number in numbers]
        mean = to_margins(found.mean, rule, unit)
        negative = to_margins(other.mean, rule, unit) if other else None
        verdict = str(part.verdict)
        if parts is not result.own_paper:  # whose verdict is its own
            verdict = _name_verdict(result, part)
        rows.append(Row(part, verdict, min(ends), mean, max(ends), negative))
    return rows


def _name_verdict(result: ClaimResult, part: Part) -> str:
    if result.verdict is Verdict.NOT_VALID:
        return str(result.verdict)
    doubt = result.claim.doubt
    is_doubted = doubt and result.reason.startswith(doubt)
    is_refuted = part in result.parts and part.verdict is Verdict.REFUTED
    return AT_FAULT if is_doubted and is_refuted else str(part.verdict)


def to_margins(number: float, rule: Rule, unit: float = 1.0) -> float:
    """Returns how far a number is beyond the bound of a rule, in its units.

    See `OVERVIEW`; of a bound of 0 the unit is given.
    """
    if math.isinf(rule.high):
        return (number - rule.low) / (abs(rule.low) or unit)
    if math.isinf(rule.low):
        return (rule.high - number) / (abs(rule.high) or unit)
    half = (rule.high - rule.low) / 2
    inside = half - abs(number - (rule.low + half))
    return (-inside if rule.outside else inside) / (half or 1.0)


def draw_claims(results: Sequence[ClaimResult]) -> bytes | None:
    """Draws every claim that was run, a band each, as PNG; None without any."""
    from matplotlib.figure import Figure

    from tfcomp.figures.exhibits import figure_to_png

    shown = [r for r in results if r.verdict is not Verdict.NOT_RUN]
    if not shown:
        return None
    entries = [(_describe(r), [*_list_sides(r)]) for r in shown]
    heights = [  # in lines
        1.2 + max(len(lines), *(len(rows) for rows, _ in sides))
        for lines, sides in entries
    ]
    tops = np.cumsum([0.0, *heights])
    total = LINE * tops[-1] + 0.9
    side = LABELS + PANEL + MEANS
    width = WORDS + side * len(TITLES)
    figure = Figure(figsize=(width, total))
    low, high = 0.6 / total, (LINE * tops[-1]) / total
    words = figure.add_axes((0.01, low, WORDS / width, high))
    words.axis("off")
    words.set_ylim(tops[-1], 0)
    panels = []
    for place, title in enumerate(TITLES):
        left = (WORDS + LABELS + side * place) / width
        panels.append(figure.add_axes((left, low, PANEL / width, high)))
        _frame(panels[-1], title, tops)
    handles: dict[str, Any] = {}
    for (lines, sides), top, height in zip(
        entries, tops[:-1], heights, strict=True
    ):
        for number, (text, style) in enumerate(lines):
            place = top + number + 0.9
            words.text(0, place, text, fontsize=7, va="center", **style)
        for axes, (rows, note) in zip(panels, sides, strict=True):
            for number, row in enumerate(rows):
                place = top + (number + 0.5) * height / len(rows)
                handles |= _draw_row(axes, place, row)
            if not rows:
                middle = top + height / 2
                axes.text(-1.0, middle, note, fontsize=6.5, ha="right")
    look: Any = {"loc": "lower left", "frameon": False, "fontsize": 7}
    figure.legend(list(handles.values()), list(handles), ncols=3, **look)
    return figure_to_png(figure, 64, dpi=140)


def _list_sides(result: ClaimResult) -> Iterator[tuple[list[Row], str]]:
    """Yields rows of the paper's test, and of ours, or why there are none."""
    claim = result.claim
    note = "the same test" if claim.quote else "not in the paper"
    negatives = (c.plant() for c in claim.controls if c.kind is Kind.NEGATIVE)
    evidence = next(negatives, Evidence())
    for checks, parts in (
        (claim.paper_tests, result.own_paper),
        (claim.tests, result.parts),
    ):
        planted = judge_checks(checks, evidence)
        yield list_rows(result, parts, planted), "trends" if parts else note


def _describe(result: ClaimResult) -> list[tuple[str, dict[str, Any]]]:
    """Returns the lines beside the panels, with their style."""
    claim = result.claim
    quote = f"“{claim.quote}”" if claim.quote else claim.place
    paper = result.paper_badge.partition("; the same")[0]
    badges = [f"paper: {paper or '–'}", f"ours: {result.badge}"]
    if paper == result.badge:
        badges = [f"both: {paper}"]
    italic = {"fontstyle": "italic", "color": "0.3"}
    return [
        (f"{claim.name}  {claim.title}", {"fontweight": "bold"}),
        *((line, italic) for line in wrap(quote, LETTERS)),
        *((line, {}) for badge in badges for line in wrap(badge, LETTERS)),
    ]


def _frame(axes: Axes, title: str, tops: np.ndarray) -> None:
    axes.set_title(title, fontsize=8, fontweight="bold")
    axes.axvspan(0.0, FURTHEST * 1.3, color="0.94", zorder=0)
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    across = axes.get_yaxis_transform()
    axes.hlines(tops, 0, 1, "0.6", linewidth=0.6, transform=across)
    axes.set_xscale("symlog", linthresh=NEAREST)
    axes.set_xlim(-FURTHEST * 1.3, FURTHEST * 1.3)
    axes.set_ylim(tops[-1], 0)
    axes.set_yticks([])
    axes.set_xticks([-50, -10, -1, 0, 1, 10, 50])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.tick_params(axis="x", labelsize=6.5, length=2)
    axes.set_xlabel("distance to the bound, in margins", fontsize=7)


def _draw_row(axes: Axes, place: float, row: Row) -> dict[str, Any]:
    """Draws the interval of a part; returns its entries of the legend."""
    is_firm = row.verdict in KIND_COLORS
    color = KIND_COLORS.get(row.verdict, "0.45")
    places = [row.low, row.mean, row.high]
    low, mean, high = np.clip(places, -FURTHEST, FURTHEST)
    style: Any = "-" if is_firm else (0, (2, 1.5))
    axes.plot([low, high], [place] * 2, color=color, lw=1.6, ls=style)
    marker = "s" if row.verdict == Verdict.NOT_VALID else "o"
    face = color if is_firm else "white"
    (handle,) = axes.plot(mean, place, marker, color=color, mfc=face, ms=4.5)
    handles = {row.verdict: handle}
    if row.negative is not None:
        cross = np.clip(row.negative, -FURTHEST, FURTHEST)
        crosses = axes.plot(cross, place, "x", color="0.25", ms=4, mew=1)
        handles["planted negative"] = crosses[0]
    assert row.part.estimate
    number = format_number(row.part.estimate.mean)
    label = shorten(row.part.label, LABEL, placeholder=" …")
    look: dict[str, Any] = {"va": "center", "color": "0.3"}
    look["transform"] = axes.get_yaxis_transform()
    axes.text(-0.03, place, label, fontsize=6, ha="right", **look)
    axes.text(1.03, place, number, fontsize=6.5, **look)
    return handles
