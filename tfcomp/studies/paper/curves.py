"""Curves of scores over seeds: over stages, places, or numbers of bumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.evaluation.metrics import find_limits
from tfcomp.figures.curve_plots import draw_curves, draw_stage_panels
from tfcomp.statistics.limits import POSITIVE, REAL, Limits
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# By title, the lines of a panel by name, and the name of their number, or what
# computes it of a group.
Reader = str | Callable[[Group], "DataFrame"]
Panels = Mapping[str, tuple[Mapping[str, Group], Reader]]


def draw_stages(panels: Panels, ylabel: str) -> Figure | None:
    """Draws numbers per stage: the mean over seeds, and its interval."""
    means: dict[str, dict] = {}
    errors: dict[str, dict] = {}
    stages: dict[str, list[str]] = {}
    for panel, (groups, shown) in panels.items():
        for name, group in groups.items():
            if isinstance(shown, str):
                table, limits = group.get_stages(shown), find_limits(shown)
            else:
                table, limits = shown(group), REAL
            names = list(map(str, table))
            if not names:
                continue
            if stages.setdefault(name, names) != names:
                # A line has the same stages in all panels; this is another.
                name = f"{name}, {panel}"
                stages[name] = names
            mean, width = summarize(table, limits)
            means.setdefault(panel, {})[name] = mean
            errors.setdefault(panel, {})[name] = width
    if not means:
        return None
    return draw_stage_panels(means, stages, ylabel=ylabel, errors=errors)


def draw_errors(
    x: Sequence[float], lines: Mapping[str, DataFrame], **words: Any
) -> Figure | None:
    """Draws errors over places; a line may end before the last of them."""
    means, bands = {}, {}
    for name, table in lines.items():
        mean, width = summarize(table, POSITIVE)
        rest = np.full(len(x) - len(mean), np.nan)
        mean, low, high = (
            np.concatenate([values, rest])
            for values in (mean, mean - width[:, 0], mean + width[:, 1])
        )
        if np.isfinite(mean).any():
            means[name], bands[name] = mean, (low, high)
    return draw_curves(x, means, bands=bands, **words) if means else None


def summarize(
    table: DataFrame, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Returns means over seeds [n], and their intervals below and above [n, 2].

    A mean is NaN where a seed lacks its number; a single seed has no width.
    """
    means, widths = [], []
    for column in table.to_numpy(float).T:
        known = column[np.isfinite(column)].tolist()
        found = compute_statistics(column.tolist(), limits=limits.widen(known))
        mean = found.mean if found else np.nan
        ends = [mean, mean]
        if found and found.low is not None and found.high is not None:
            ends = [found.low, found.high]
        means.append(mean)
        widths.append(np.abs(np.subtract(ends, mean)))
    return np.array(means), np.nan_to_num(np.reshape(widths, (-1, 2)))
