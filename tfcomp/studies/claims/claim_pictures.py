"""Figures of claims, by caption: from runs and parts to pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.statistics.limits import POSITIVE, REAL, Limits
from tfcomp.statistics.measure import find_limits
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.studies.claims.run_numbers import PerStage, read_stages
from tfcomp.studies.claims.selection import Group
from tfcomp.studies.claims.verdict import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VOLUME = "log-volume"
MAX_ROWS = 16
# What dots and bars are, by what is counted.
BARS = {
    "seeds": "dots are seeds, the bar is the 95 % interval of their mean",
    "share": "dots are seeds, the bar is Clopper and Pearson's interval",
    "sizes": "the bar is the 95 % interval of a slope over sizes",
}

Figures = dict[str, "Figure"]
# Lines of a panel by name, and the number that they show at every stage.
Panel = tuple[Mapping[str, Group], PerStage]
# What the seeds have at one place; None for a seed that lacks its number.
Column = Sequence[float | None]


def draw_parts(parts: Sequence[Part]) -> Figures:
    """The numbers of the deciding parts, if there are any, with their rules.

    Parts of one quantity and one rule share a panel.
    """
    from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest

    shown = [part for part in parts if part.decides and part.estimate]
    if not shown:
        return {}
    panels: dict[tuple, list[ForestRow]] = {}
    for part in shown:
        found = part.estimate
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
    bars = [BARS[unit] for unit in sorted({p.estimate.unit for p in shown})]
    caption = (
        f"Numbers of the parts that decide: {', '.join(bars)}; shaded: what "
        "agrees with the rule."
    )
    return {caption: figure}


def draw_stages(
    panels: Mapping[str, Panel], ylabel: str, caption: str
) -> Figures:
    """Numbers per stage: mean over the seeds of a group, and its interval.

    Args:
        panels: Title of a panel to its groups and what is read from them.
        caption: Of the figure, which is drawn if a group has the numbers.
    """
    from tfcomp.figures.curve_plots import draw_stage_panels

    means: dict[str, dict] = {}
    errors: dict[str, dict] = {}
    stages: dict[str, list[str]] = {}
    for panel, (groups, shown) in panels.items():
        for name, group in groups.items():
            tables = [read_stages(run, shown) for run in group.runs]
            names = list(tables[0]) if tables else []
            if not names or any(list(table) != names for table in tables):
                continue
            if stages.setdefault(name, names) != names:
                # A line has the same stages in all panels; this is another.
                name = f"{name}, {panel}"
                stages[name] = names
            columns = zip(*(table.values() for table in tables), strict=True)
            limits = find_limits(shown) if isinstance(shown, str) else REAL
            mean, width = summarize(list(columns), limits)
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
    """Errors over places: mean over seeds, and its interval.

    Args:
        x: The places; a line may end before the last of them.
        lines: Name of a line to its columns, one a place.
        ylabel: What the numbers are, none of which is below 0.
        caption: Of the figure, which is drawn if a line has a number.
        logy: Whether the scale of the numbers is logarithmic.
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


def list_columns(group: Group, name: str) -> list[Column]:
    """A measure that is a list, one column a place; empty if runs lack it."""
    tables = [run.get_list(name) for run in group.runs]
    if len(set(map(len, tables))) != 1:
        return []
    return list(zip(*tables, strict=True))


def summarize(
    columns: Sequence[Column], limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Means over seeds [n], and how far intervals reach below and above [n, 2].

    A mean is NaN where a seed lacks its number; a single seed has no width.
    """
    means, widths = [], []
    for column in columns:
        wide = limits if None in column else limits.widen(column)
        found = compute_statistics(column, limits=wide)
        means.append(found.mean if found else np.nan)
        has_ends = found is not None and found.low is not None
        ends = (found.low, found.high) if has_ends else (means[-1],) * 2
        widths.append(np.abs(np.subtract(ends, means[-1])))
    return np.array(means), np.nan_to_num(np.reshape(widths, (-1, 2)))
