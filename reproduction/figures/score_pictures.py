"""Pictures of scores over seeds, without trained networks."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.networks import read_score
from reproduction.figures.paper_figure import Drawn, Groups
from reproduction.thresholds.laws import plot_thresholds
from tfcomp.figures.curve_plots import (
    draw_stage_panels,
    join_curves,
    list_seeds,
)
from tfcomp.figures.exhibits import Plot
from tfcomp.metrics.registry import find_limits, label_number
from tfcomp.report.table_plots import average, draw_score_panels
from tfcomp.statistics.limits import REAL

SEEDS = "seeds that fit the training images (where none does, all)"
# The metric of each stage, the label of its axis, and its description.
STAGES = {
    "factorization": (
        "factorization",
        "factorization F",
        "Factorization (equation 7)",
    ),
    "probes": (
        "probe_r2_ood",
        "R² of linear probes",
        "Linear probes that are fitted on trained points and scored on "
        "held-out points",
    ),
    "volume": (
        "log_volume_difference",
        "log-volume, held out less trained",
        "Mean log-volume over held-out points less the mean over trained "
        "points, and less the same difference of the code",
    ),
}


def draw_stages(
    evidence: Evidence,
    groups: Groups,
    name: str,
    codes: Sequence[str],
) -> Drawn:
    """Plots one of `STAGES`: a panel for each code, a line for a group.

    Args:
        evidence: All runs.
        groups: The runs that are drawn, by label.
        name: A name of `STAGES`.
        codes: The codes that have a panel.
    """
    metric, ylabel, words = STAGES[name]
    curves = {}
    seeds = []
    for label, runs in groups.items():
        code, _, line = label.partition(", ")
        table = evidence.stages(runs, metric)
        has_values = table.notna().any(axis=None)
        if code not in codes or not has_values:
            continue
        limits = REAL
        if name == "volume":
            table = table.sub(table["code"], axis=0)
        else:
            limits = find_limits(metric)
        # Networks of one depth have the same stages with both codes.
        panel = f"{code} code"
        curves[panel, line] = average(table, limits)
        seeds.append(list_seeds(table, panel, line, "stage"))
    if not curves:
        return {}
    caption = (
        f"{words}. Thick lines: means over {SEEDS}, with 95 % intervals, cut "
        "at the axis where they are wide. Thin lines: seeds."
    )
    plot = draw_stage_panels(
        join_curves(curves, "stage"),
        ylabel=ylabel,
        seeds=pd.concat(seeds),
    )
    return {caption: plot}


def draw_search(
    evidence: Evidence,
    _: Groups,
    criterion: str,
    study: str,
) -> Drawn:
    """Plots thresholds against the size of the grid, with their laws.

    Args:
        evidence: Has the studies.
        criterion: The score that a search has a target of.
        study: The name of the study.
    """
    if study not in evidence.studies:
        return {}
    searches = evidence.studies[study]
    is_asked = searches["criterion"] == criterion
    searches = searches[is_asked]
    target = searches["target"].iloc[0]
    caption = (
        f"The smallest number of training examples (stripes included) with "
        f"which {label_number(criterion)} reached {target:g}. Small: one "
        "search. Large: geometric mean over seeds. Line: power law through "
        "the means, with the 95 % interval of its exponent."
    )
    return {caption: plot_thresholds(searches)}


def draw_scores(
    evidence: Evidence,
    groups: Groups,
    names: Sequence[str],
) -> Drawn:
    """Plots scores of all groups, side by side, on logarithmic scales.

    Args:
        evidence: Has the scores.
        groups: The runs that are drawn, by label.
        names: The scores.
    """
    if not groups:
        return {}
    readers = {name: read_score(name) for name in names}
    caption = f"Gray: {SEEDS}. Diamonds: geometric means, with 95 % intervals."
    return {caption: draw_panels(evidence, groups, readers)}


def draw_panels(
    evidence: Evidence,
    kinds: Mapping[str, pd.DataFrame],
    readers: Mapping[str, Callable[[Evidence, pd.DataFrame], pd.Series]],
) -> Plot:
    """Draws a panel for each number, with a row for each kind of networks.

    Args:
        evidence: The runs and their numbers.
        kinds: Runs by the name of their kind.
        readers: By the label of a panel, what reads a number of each run.
    """
    panels: dict[str, dict[str, pd.Series]] = {}
    for label, read in readers.items():
        panels[label] = {}
        for name, runs in kinds.items():
            panels[label][name] = read(evidence, runs)
    return draw_score_panels(panels)


DRAWERS: dict[str, Callable[..., Drawn]] = {
    "stages": draw_stages,
    "search": draw_search,
    "scores": draw_scores,
}
