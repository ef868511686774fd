"""Pictures of scores over seeds, without trained networks."""

from collections.abc import Mapping, Sequence

import pandas as pd

from reproduction.claims.evidence import Networks, Reader
from reproduction.figures.paper_figure import Drawn, FigureRuns
from reproduction.thresholds.laws import plot_thresholds
from tfcomp.figures.curve_plots import draw_stage_panels
from tfcomp.figures.exhibits import Plot
from tfcomp.metrics.registry import find_limits, label_number
from tfcomp.report.table_plots import draw_score_panels

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
    runs: FigureRuns,
    name: str,
    codes: Sequence[str],
) -> Drawn:
    """Plots one of `STAGES`: a panel for each code, a line for a group.

    Args:
        runs: The runs that are drawn.
        name: A name of `STAGES`.
        codes: The codes that have a panel.
    """
    metric, ylabel, words = STAGES[name]
    curves = {}
    for label, networks in runs.groups.items():
        code, _, line = label.partition(", ")
        table = networks.stages(metric)
        has_values = table.notna().any(axis=None)
        if code not in codes or not has_values:
            continue
        if name == "volume":
            table = table.sub(table["code"], axis=0)
        # Networks of one depth have the same stages with both codes.
        curves[f"{code} code", line] = table
    if not curves:
        return {}
    caption = (
        f"{words}. Thick lines: means over {SEEDS}, with 95 % intervals, cut "
        "at the axis where they are wide. Thin lines: seeds."
    )
    plot = draw_stage_panels(
        curves,
        ylabel=ylabel,
        limits=find_limits(metric),
    )
    return {caption: plot}


def draw_search(runs: FigureRuns, criterion: str, study: str) -> Drawn:
    """Plots thresholds against the size of the grid, with their laws.

    Args:
        runs: Its evidence has the studies.
        criterion: The score that a search has a target of.
        study: The name of the study.
    """
    searches = runs.evidence.studies.get(study)
    if searches is None:
        return {}
    searches = searches[searches["criterion"] == criterion]
    target = searches["target"].iloc[0]
    caption = (
        f"The smallest number of training examples (stripes included) with "
        f"which {label_number(criterion)} reached {target:g}. Small: one "
        "search. Large: geometric mean over seeds. Line: power law through "
        "the means, with the 95 % interval of its exponent."
    )
    return {caption: plot_thresholds(searches)}


def draw_scores(runs: FigureRuns, names: Sequence[str]) -> Drawn:
    """Plots scores of all groups, side by side, on logarithmic scales.

    Args:
        runs: The runs that are drawn.
        names: The scores.
    """
    if not runs.groups:
        return {}
    caption = f"Gray: {SEEDS}. Diamonds: geometric means, with 95 % intervals."
    panels = {name: name for name in names}
    return {caption: draw_panels(runs.groups, panels)}


def draw_panels(
    kinds: Mapping[str, Networks],
    numbers: Mapping[str, Reader],
) -> Plot:
    """Draws a panel for each number, with a row for each kind of networks.

    Args:
        kinds: Networks by the name of their kind.
        numbers: A number by the label of its panel.
    """
    panels: dict[str, dict[str, pd.Series]] = {}
    for label, number in numbers.items():
        panels[label] = {}
        for name, networks in kinds.items():
            panels[label][name] = networks.read(number)
    return draw_score_panels(panels)
