"""Figures of claims: from runs and parts to pictures, by caption."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tfcomp.claims.evidence import Run
from tfcomp.claims.parts import Part
from tfcomp.claims.selection import Group
from tfcomp.figures import draw_curves
from tfcomp.figures import draw_stage_panels
from tfcomp.figures.curves import add_line_legend
from tfcomp.figures.curves import finish_axes
from tfcomp.figures.curves import get_line_style
from tfcomp.figures.estimates import EstimatePanel
from tfcomp.figures.estimates import EstimateRow
from tfcomp.figures.estimates import draw_estimates
from tfcomp.figures.layout import settle_layout
from tfcomp.seed_statistics import compute_statistics

VOLUME = "log-volume"
Figures = dict[str, Figure]
ReadStages = Callable[[Run], dict[str, float | None]]
Line = Group | tuple[Group, ReadStages]
MAX_ROWS = 16


def draw_parts(parts: Sequence[Part]) -> Figure | None:
    """The numbers of the deciding parts against their rules.

    Parts of one quantity and one rule share a panel. None without numbers.
    """
    panels: dict[tuple, list[EstimateRow]] = {}
    for part in parts:
        if part.estimate is None or not part.decides:
            continue
        found = part.estimate
        row = EstimateRow(
            part.label,
            list(found.values.values()),
            found.mean,
            found.low,
            found.high,
            str(part.verdict),
        )
        panels.setdefault((part.quantity, part.rule), []).append(row)
    if not panels:
        return None
    return draw_estimates(
        [
            EstimatePanel(
                quantity, (rule.low, rule.high), rule.outside, rows[:MAX_ROWS]
            )
            for (quantity, rule), rows in panels.items()
        ]
    )


def read_stages(name: str) -> ReadStages:
    """Reads a number per stage of a run."""
    return lambda run: run.get_stages(name)


def draw_stages(
    panels: Mapping[str, Mapping[str, Line]],
    read: ReadStages | None,
    ylabel: str,
    caption: str,
) -> Figures:
    """Numbers per stage: mean over the seeds of a group, and its interval.

    Args:
        panels: Title of a panel to its lines, groups by name; with a
            function of their own, if it is not the same for all.
        read: Gives the numbers of a run.
        ylabel: What they are.
        caption: Of the figure.

    Returns:
        The figure by its caption; nothing if no group has the numbers.
    """
    means: dict[str, dict] = {}
    errors: dict[str, dict] = {}
    stages: dict[str, list[str]] = {}
    for panel, lines in panels.items():
        for name, line in lines.items():
            group, own = line if isinstance(line, tuple) else (line, read)
            found = summarize_stages(group, own)
            if found is None:
                continue
            names, mean, error = found
            if stages.setdefault(name, names) != names:
                # A line has the same stages in all panels; this is another.
                name = f"{name}, {panel}"
                stages[name] = names
            means.setdefault(panel, {})[name] = mean
            errors.setdefault(panel, {})[name] = error
    if not means:
        return {}
    figure = draw_stage_panels(means, stages, ylabel=ylabel, errors=errors)
    return {caption: figure}


def summarize_stages(
    group: Group, read: ReadStages
) -> tuple[list[str], list[float], list[float]] | None:
    """Names of stages, means over seeds and half-widths of intervals.

    None if no run has numbers, or a run has other stages.
    """
    tables = [read(run) for run in group.runs]
    names = list(tables[0]) if tables else []
    if not names or any(list(table) != names for table in tables):
        return None
    found = [compute_statistics([t[name] for t in tables]) for name in names]
    means = [s.mean if s else float("nan") for s in found]
    widths = [(s.half_width if s else None) or 0.0 for s in found]
    return names, means, widths


def draw_spread(groups: Mapping[str, Group]) -> Figures:
    """Spread of log-volume per stage, over ID and over OOD points."""
    panels = {
        f"{split} points": {
            name: (group, read_stages(f"log_volume_sd_{split.lower()}"))
            for name, group in groups.items()
        }
        for split in ("ID", "OOD")
    }
    return draw_stages(
        panels,
        None,
        f"spread of {VOLUME}",
        "Standard deviation of log-volume (natural logarithm) over ID and "
        "over OOD points, mean over seeds, with 95 % intervals.",
    )


def draw_border_curves(parts: Sequence[Part]) -> Figures:
    """OOD error at every distance from ID, a line per part."""
    lines = {}
    for part in parts:
        tables = [run.get_list("border_relative_mse") for run in part.runs]
        found = summarize_lists(tables)
        if found:
            lines[part.label] = found
    size = max((len(mean) for mean, _, _ in lines.values()), default=0)
    if not size:
        return {}
    figure = _draw_lines(
        np.arange(1, size + 1),
        {name: [_pad(v, size) for v in line] for name, line in lines.items()},
        xlabel="distance to the nearest ID position (grid steps)",
        ylabel="OOD MSE / blank",
    )
    figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return {
        "OOD error, as a multiple of a blank image's, against the distance "
        "to ID; mean over positions and seeds, with 95 % intervals over "
        "seeds.": figure
    }


def draw_error_curve(group: Group, xlabel: str) -> Figures:
    """MSE along the one ordered factor."""
    tables = [run.get_list("curve_mse") for run in group.runs]
    found = summarize_lists(tables)
    if found is None:
        return {}
    places = group.runs[0].get_list("curve_values")
    figure = _draw_lines(
        places, {"mean over seeds": found}, xlabel, "MSE over pixels", logy=True
    )
    return {"MSE at every angle, with 95 % intervals over seeds.": figure}


def draw_counts(series: Mapping[int, Group]) -> Figures:
    """OOD error against the number of bumps beside the stripes."""
    counts = [count for count, group in series.items() if group.runs]
    if len(counts) < 2:
        return {}
    names = {"against true bumps": "ood", "against the plus": "ood_plus"}
    lines = {}
    for label, split in names.items():
        columns = [
            compute_statistics(
                [run.get(f"{split}/relative_mse") for run in series[n].runs]
            )
            for n in counts
        ]
        if all(columns):
            mean = np.array([c.mean for c in columns])
            width = np.array([c.half_width or 0.0 for c in columns])
            lines[label] = (mean, mean - width, mean + width)
    if not lines:
        return {}
    figure = _draw_lines(
        counts,
        lines,
        xlabel="bumps in training, beside the stripes",
        ylabel="OOD MSE / blank",
        logy=True,
    )
    return {
        "OOD error, as a multiple of a blank image's, mean over seeds, with "
        "95 % intervals.": figure
    }


def draw_thresholds(
    rows: Sequence[Mapping[str, Any]], criterion: str, quantity: str
) -> Figures:
    """Examples needed against the size of the grid, both logarithmic."""
    kinds: dict[str, list] = {}
    for row in rows:
        if row.get("criterion") == criterion and row.get("reached") is True:
            name = f"{row['kind']}, {row['region']}".replace("_", " ")
            kinds.setdefault(name, []).append((row["grid_size"], row[quantity]))
    if not kinds:
        return {}
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, (name, points) in enumerate(kinds.items()):
        style = get_line_style(index)
        sizes, counts = np.array(sorted(points), float).T
        seeds = {**style, "linestyle": ""}
        axes.plot(sizes, counts, alpha=0.5, markersize=4, **seeds)
        places = np.unique(sizes)
        means = [np.exp(np.log(counts[sizes == s]).mean()) for s in places]
        axes.plot(places, means, label=name, linewidth=1.6, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({size for points in kinds.values() for size, _ in points})
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("grid size N (px)")
    axes.set_ylabel("training examples needed")
    finish_axes(axes)
    add_line_legend(figure)
    settle_layout(figure)
    return {
        "Least number of training examples that reach the target, every seed "
        "(faint) and their geometric mean; searches that failed are left "
        "out.": figure
    }


def summarize_lists(
    tables: Sequence[Sequence[float | None]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Mean and interval over seeds of lists of equal length, [n] each."""
    lengths = {len(table) for table in tables}
    if len(lengths) != 1 or lengths == {0}:
        return None
    columns = [
        compute_statistics(column) for column in zip(*tables, strict=True)
    ]
    mean = np.array([c.mean if c else np.nan for c in columns])
    width = np.array([(c.half_width if c else None) or 0.0 for c in columns])
    return mean, mean - width, mean + width


def _draw_lines(
    x: Sequence[float],
    lines: Mapping[str, Sequence[np.ndarray]],
    xlabel: str,
    ylabel: str,
    logy: bool = False,
) -> Figure:
    return draw_curves(
        x,
        {name: line[0] for name, line in lines.items()},
        bands={
            name: (np.maximum(line[1], line[0] * 1e-3), line[2])
            if logy
            else (line[1], line[2])
            for name, line in lines.items()
        },
        xlabel=xlabel,
        ylabel=ylabel,
        logy=logy,
    )


def _pad(values: np.ndarray, size: int) -> np.ndarray:
    return np.pad(values, (0, size - len(values)), constant_values=np.nan)
