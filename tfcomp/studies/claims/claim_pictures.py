"""Figures of claims, by caption: from runs and parts to pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.evaluation.metrics import find_limits
from tfcomp.statistics.limits import POSITIVE, REAL, Limits
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.statistics.verdicts import Rule, Verdict
from tfcomp.studies.claims.claim import list_values
from tfcomp.studies.claims.parts import Part
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from tfcomp.studies.claims.judgement import ClaimResult

VOLUME = "log-volume"
MAX_ROWS = 16
# What dots and bars are, by what is counted.
BARS = {
    "seeds": "dots are seeds, the bar is the 95 % interval of their mean",
    "share": "dots are seeds, the bar is Clopper and Pearson's interval",
    "sizes": "the bar is the 95 % interval of a slope over sizes",
}

# The picture of all verdicts.
OVERVIEW = (
    "Every part that decides a claim and has an interval, with its 95 % "
    "interval. 0 is the bound of its rule, to the right is what the claim "
    "says, and 1 is farther by as much as the bound is from 0 (of a rule with "
    "two bounds: its middle)."
)
NEAREST = 2.0  # from here on its axis is logarithmic

Figures = dict[str, "Figure"]
# By title, the lines of a panel by name, and the name of their number, or what
# computes it of a group.
Panels = Mapping[str, tuple[Mapping[str, Group], Any]]
# What the seeds have at one place; None for a seed that lacks its number.
Column = Sequence[float | None]


def draw_parts(parts: Sequence[Part]) -> Figures:
    """The numbers of the parts that decide, a panel for a number and a rule."""
    from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest

    shown = [(p, p.estimate) for p in parts if p.decides and p.estimate]
    if not shown:
        return {}
    panels: dict[tuple, list[ForestRow]] = {}
    for part, found in shown:
        seeds = list(found.values.values())
        numbers = found.mean, found.low, found.high, seeds
        row = ForestRow(part.label, *numbers, str(part.verdict))
        panels.setdefault((part.quantity, part.rule), []).append(row)
    figure = draw_forest(
        [
            ForestPanel(
                quantity, rows[:MAX_ROWS], (rule.low, rule.high), rule.outside
            )
            for (quantity, rule), rows in panels.items()
        ]
    )
    bars = [BARS[unit] for unit in sorted({found.unit for _, found in shown})]
    words = f"Numbers of the parts that decide: {', '.join(bars)}"
    return {f"{words}; shaded: what agrees with the rule.": figure}


def draw_stages(panels: Panels, ylabel: str, caption: str) -> Figures:
    """Numbers per stage, if any: mean over seeds, and its interval."""
    from tfcomp.figures.curve_plots import draw_stage_panels

    means: dict[str, dict] = {}
    errors: dict[str, dict] = {}
    stages: dict[str, list[str]] = {}
    for panel, (groups, shown) in panels.items():
        for name, group in groups.items():
            is_name = isinstance(shown, str)
            table = group.get_stages(shown) if is_name else shown(group)
            names = list(table)
            if not names:
                continue
            if stages.setdefault(name, names) != names:
                # A line has the same stages in all panels; this is another.
                name = f"{name}, {panel}"
                stages[name] = names
            limits = find_limits(shown) if is_name else REAL
            mean, width = summarize(list_columns(table), limits)
            means.setdefault(panel, {})[name] = mean
            errors.setdefault(panel, {})[name] = width
    if not means:
        return {}
    figure = draw_stage_panels(means, stages, ylabel=ylabel, errors=errors)
    return {caption: figure}


def draw_spread(groups: Mapping[str, Group]) -> Figures:
    """Spread of log-volume per stage, over ID and over OOD points."""
    return draw_stages(
        {
            "ID points": (groups, "log_volume_sd_id"),
            "OOD points": (groups, "log_volume_sd_ood"),
        },
        f"spread of {VOLUME}",
        "Standard deviation of log-volume (natural logarithm) over ID and "
        "over OOD points, mean over seeds, with 95 % intervals.",
    )


def draw_lines(
    x: Sequence[float],
    lines: Mapping[str, Sequence[Column]],
    *,
    xlabel: str,
    ylabel: str,
    caption: str,
    logy: bool = False,
) -> Figures:
    """Errors over places, if there are any: mean over seeds, and its interval.

    Args:
        x: The places; a line may end before the last of them.
        lines: Name of a line to its columns, one a place.
        ylabel: What the numbers are, none of which is below 0.
    """
    from tfcomp.figures.curve_plots import draw_curves

    means, bands = {}, {}
    for name, columns in lines.items():
        missing = [()] * (len(x) - len(columns))
        mean, width = summarize([*columns, *missing], POSITIVE)
        if np.isfinite(mean).any():
            means[name] = mean
            bands[name] = mean - width[:, 0], mean + width[:, 1]
    if not means:
        return {}
    figure = draw_curves(
        x, means, bands=bands, xlabel=xlabel, ylabel=ylabel, logy=logy
    )
    return {caption: figure}


def list_columns(table: DataFrame) -> list[Column]:
    """Returns the columns of a table, of the values of all seeds each."""
    return [list(list_values(table[name]).values()) for name in table]


def summarize(
    columns: Sequence[Column], limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Means over seeds [n], and how far intervals reach below and above [n, 2].

    A mean is NaN where a seed lacks its number; a single seed has no width.
    """
    means, widths = [], []
    for column in columns:
        known = [value for value in column if value is not None]
        found = compute_statistics(column, limits=limits.widen(known))
        mean = found.mean if found else np.nan
        ends = [mean, mean]
        if found and found.low is not None and found.high is not None:
            ends = [found.low, found.high]
        means.append(mean)
        widths.append(np.abs(np.subtract(ends, mean)))
    return np.array(means), np.nan_to_num(np.reshape(widths, (-1, 2)))


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
    rows = []
    for result in results:
        for part in result.parts:
            found, rule = part.estimate, part.rule
            if not (part.decides and found):
                continue
            if found.low is None or found.high is None:
                continue
            is_valid = result.verdict != Verdict.NOT_VALID
            verdict = part.verdict if is_valid else result.verdict
            # Of two bounds, the middle is farthest from what is outside.
            middle = (rule.low + rule.high) / 2
            turns = [middle] if found.low < middle < found.high else []
            places = found.low, found.high, *turns
            ends = [to_margins(place, rule) for place in places]
            mean = to_margins(found.mean, rule)
            label = f"{result.claim.name} {part.label}"
            rows.append(Row(label, str(verdict), min(ends), mean, max(ends)))
    return rows


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
    """All verdicts: every deciding part against the margin of its rule.

    None if no part has an interval.
    """
    from matplotlib.figure import Figure

    rows = list_rows(results)
    if not rows:
        return None
    figure = Figure(figsize=(12.8, 7.2), layout="constrained")  # a screen
    half = -(-len(rows) // 2)
    panels, handles = figure.subplots(1, 2), dict[str, Any]()
    for axes, shown in zip(panels, (rows[:half], rows[half:]), strict=True):
        _draw_panel(axes, shown, half)
        found, texts = axes.get_legend_handles_labels()
        handles |= dict(zip(texts, found, strict=True))
    figure.legend(
        list(handles.values()),
        list(handles),
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
    labels = [shorten(row.label, 52, placeholder=" …") for row in rows]
    axes.set_yticks(range(len(rows)), labels)
    axes.tick_params(axis="y", labelsize=7, length=0)
    axes.set_xlabel("distance to the bound of the rule, in margins")
    axes.grid(axis="y", color="0.9", linewidth=0.5)
