"""Pictures without trained networks: of scores over seeds, and of the data."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.figures.paper_figure import Drawn, Groups
from reproduction.thresholds.laws import plot_thresholds
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.figures import layout
from tfcomp.figures.curve_plots import (
    draw_curve_panels,
    draw_stage_panels,
    join_curves,
)
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.pictures import choose_spread, get_pixel_mask
from tfcomp.metrics.registry import find_limits
from tfcomp.report.table_plots import average, draw_score_panels
from tfcomp.statistics.limits import POSITIVE, REAL

SEEDS = "seeds that fit ID (where none does, all)"
ERROR_MAP = "sweep_error_map"
# The metric of each stage, the label of its axis, and its description.
STAGES = {
    "factorization": ("factorization", "F (eq. 7)", "Factorization"),
    "probes": ("probe_r2_ood", "R²", "Linear probes from ID to OOD"),
    "volume": (
        "log_volume_difference",
        "log-volume, OOD - ID - code",
        "Mean log-volume over OOD points less the mean over ID points, and "
        "less the same difference of the code",
    ),
}


def draw_stages(
    evidence: Evidence, groups: Groups, name: str, codes: Sequence[str]
) -> Drawn:
    """Plots one of `STAGES`: a panel for each code, a line for a group."""
    metric, ylabel, words = STAGES[name]
    curves = {}
    for label, runs in groups.items():
        code, _, line = label.partition(", ")
        table = evidence.stages(runs, metric)
        if code not in codes or table.isna().all(axis=None):
            continue
        limits = REAL
        if name == "volume":
            table = table.sub(table["code"], axis=0)
        else:
            limits = find_limits(metric)
        # Networks of one depth have the same stages with both codes.
        curves[f"{code} code", line] = average(table, limits)
    if not curves:
        return {}
    caption = f"{words}, mean over {SEEDS}, with 95 % intervals."
    points = join_curves(curves, "stage")
    return {caption: draw_stage_panels(points, ylabel=ylabel)}


def draw_curve(evidence: Evidence, groups: Groups, name: str) -> Drawn:
    """Plots an error over the values of the factor with a gap."""
    curves = {}
    for label, runs in groups.items():
        errors = read_places(evidence, runs, f"{name}_mse")
        values = read_places(evidence, runs, f"{name}_values")
        if errors.size:
            errors.columns = values.iloc[0].tolist()
            curves["MSE over pixels", label] = average(errors, POSITIVE)
    if not curves:
        return {}
    figure = draw_curve_panels(
        join_curves(curves), xlabel="angle (degrees)", log=["MSE over pixels"]
    )
    return {f"MSE at every angle, mean over {SEEDS}, 95 % intervals.": figure}


def read_places(
    evidence: Evidence, runs: pd.DataFrame, name: str
) -> pd.DataFrame:
    """Reads a list of numbers of each run [seeds, places]."""
    numbers = evidence.results.numbers
    is_asked = numbers["name"].str.startswith(f"{name}/")
    is_own = numbers["run"].isin(runs.index) & (numbers["when"] == "end")
    numbers = numbers[is_asked & is_own]
    places = numbers["name"].str.rpartition("/")[2].astype(int)
    table = numbers.assign(place=places)
    return table.pivot(index="run", columns="place", values="value")


def draw_search(evidence: Evidence, _: Groups, criterion: str) -> Drawn:
    """Plots thresholds against the size of the grid, with their laws."""
    chosen = []
    for kind in ("bumps", "stripes_and_bumps"):
        best = pd.DataFrame()
        # The study with the most sizes, of several the first by its name.
        for table in evidence.studies.values():
            is_asked = table["kind"] == kind
            rows = table[is_asked & (table["criterion"] == criterion)]
            if count_sizes(rows) > count_sizes(best):
                best = rows
        chosen.append(best)
    searches = pd.concat(chosen)
    if searches.empty:
        return {}
    caption = (
        f"The smallest number of training examples (stripes included) that "
        f"reached {criterion} of {searches['target'].iloc[0]:g}. Small: one "
        "search. Large: geometric mean over seeds. Line: power law through "
        "the means, with the 95 % interval of its exponent."
    )
    return {caption: plot_thresholds(searches)}


def count_sizes(searches: pd.DataFrame) -> int:
    """Counts the sizes of the grid with three seeds or more."""
    if searches.empty:
        return 0
    seeds = searches.groupby("grid_size")["seed"].nunique()
    return int((seeds >= 3).sum())


def draw_scores(
    evidence: Evidence, groups: Groups, names: Sequence[str]
) -> Drawn:
    """Plots scores of all groups, side by side, on logarithmic scales."""
    if not groups:
        return {}
    panels: dict[str, dict[str, pd.Series]] = {}
    for name in names:
        panels[name] = {}
        for label, runs in groups.items():
            panels[name][label] = evidence.score(runs, name)
    caption = f"All {SEEDS} (gray), geometric mean (diamond), 95 % interval."
    return {caption: draw_score_panels(panels)}


def draw_error_map(evidence: Evidence, _: Groups, name: str) -> Drawn:
    """Plots a score over the size of the image and the held-out share."""
    runs = evidence.match(study=ERROR_MAP)
    if runs.empty:
        return {}
    columns = {}
    for path in ("points/id", "points/ood", name):
        columns[path] = evidence.score(runs, path).to_numpy()
    scores = pd.DataFrame(columns, runs.index)
    total = scores["points/id"] + scores["points/ood"]
    points = pd.DataFrame(
        {
            "size of the image (px)": runs["grid_size"],
            "positions held out (%)": 100 * scores["points/ood"] / total,
            name: scores[name],
        }
    )
    caption = (
        f"{name}. Dots are networks that were trained; lines have equal "
        "errors, interpolated between dots."
    )
    return {caption: draw_contours(points.dropna())}


def draw_contours(points: pd.DataFrame) -> layout.Plot:
    """Draws lines of equal numbers; the columns are x, y and the number."""
    figure = layout.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    x, y, z = points.to_numpy(float).T
    filled = axes.tricontourf(x, y, z, levels=8, cmap="viridis")
    levels = np.asarray(filled.levels)
    lines = axes.tricontour(x, y, z, levels=levels, colors="white")
    axes.clabel(lines, fmt="%.3g")
    axes.plot(x, y, "o", color="black", ms=3, clip_on=False)
    xlabel, ylabel, label = points
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.set_xticks(np.unique(x))
    figure.colorbar(filled, label=label)
    return layout.finish_figure(figure, "", lambda: points)


def draw_donut(*_: object) -> Drawn:
    """Plots images of some ID and OOD positions; outlines the region."""
    drawn = {}
    for file in ("donut.flags", "corner.flags"):
        dataset = load_dataset(file)
        splits = dataset.splits
        images = {}
        for subset, mask in (("ID", splits.is_id), ("OOD", splits.is_ood)):
            points = splits.grid[choose_spread(np.flatnonzero(mask))]
            images[subset] = dataset.render_array(points)
        caption = f"The held-out region {dataset.region.spec} is outlined."
        drawn[caption] = draw_rows(images, mask=get_pixel_mask(dataset))
    return drawn


def draw_stripes(*_: object) -> Drawn:
    """Plots the training set of stripes alone."""
    dataset = load_dataset("stripes.flags")
    stripes = dataset.splits.train
    rows = {}
    for start in range(0, len(stripes), 14):
        points = stripes[start : start + 14]
        (column,) = np.flatnonzero(np.isfinite(points[0]))
        label = f"{dataset.space.names[column]} from {points[0, column]:g}"
        rows[label] = dataset.render_array(points)
    return {f"All {len(stripes)} stripes.": draw_rows(rows)}


def load_dataset(flagfile: str) -> Dataset:
    """Loads the dataset of a shipped flagfile."""
    return make_dataset(parse_config([f"--flagfile={flagfile}"]))


DATA = {"donut": draw_donut, "stripes": draw_stripes}
DRAWERS: dict[str, Callable[..., Drawn]] = {
    "data": lambda _, __, name: DATA[name](),
    "stages": draw_stages,
    "curve": draw_curve,
    "search": draw_search,
    "contours": draw_error_map,
    "scores": draw_scores,
}
