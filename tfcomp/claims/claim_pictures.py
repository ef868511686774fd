"""Figures of claims: from runs and parts to pictures, by caption."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from matplotlib.figure import Figure

from tfcomp.claims.evidence import Run
from tfcomp.claims.parts import Part
from tfcomp.claims.selection import Group
from tfcomp.figures import ForestPanel
from tfcomp.figures import ForestRow
from tfcomp.figures import draw_forest
from tfcomp.figures import draw_stage_panels
from tfcomp.statistics.seed_statistics import compute_statistics

VOLUME = "log-volume"
Figures = dict[str, Figure]
ReadStages = Callable[[Run], dict[str, float | None]]
Line = Group | tuple[Group, ReadStages]
MAX_ROWS = 16


def draw_parts(parts: Sequence[Part]) -> Figure | None:
    """The numbers of the deciding parts against their rules.

    Parts of one quantity and one rule share a panel. None without numbers.
    """
    panels: dict[tuple, list[ForestRow]] = {}
    for part in parts:
        if part.estimate is None or not part.decides:
            continue
        found = part.estimate
        row = ForestRow(
            part.label,
            found.mean,
            found.low,
            found.high,
            list(found.values.values()),
            str(part.verdict),
        )
        panels.setdefault((part.quantity, part.rule), []).append(row)
    if not panels:
        return None
    return draw_forest(
        [
            ForestPanel(
                quantity, rows[:MAX_ROWS], (rule.low, rule.high), rule.outside
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
