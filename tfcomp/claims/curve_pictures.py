"""Curves of claims: errors over distance, angle, bumps and size."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.parts import Part
from tfcomp.claims.selection import Group
from tfcomp.figures import draw_curves
from tfcomp.figures.layout import add_legend
from tfcomp.figures.layout import settle_layout
from tfcomp.figures.line_style import finish_axes
from tfcomp.figures.line_style import get_line_style
from tfcomp.statistics.seed_statistics import compute_statistics


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
    add_legend(figure)
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
