"""Pictures without trained networks: of scores over seeds, and of the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from reproduction.figures.claim_pictures import draw_cures, draw_symptoms
from reproduction.figures.paper_figure import Drawer, Drawn, PaperFigure
from reproduction.thresholds.command import make_exhibits
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import (
    draw_curve_panels,
    draw_stage_panels,
    join_curves,
)
from tfcomp.figures.exhibits import Plot
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.pictures import choose_spread, get_pixel_mask
from tfcomp.metrics.registry import find_limits
from tfcomp.report.table_plots import average, draw_score_panels, list_by_seed
from tfcomp.statistics.limits import POSITIVE, REAL
from tfcomp.statistics.seed_statistics import estimate_geometric

SEEDS = "seeds that fit ID (where none does, all)"
VOLUME = "log_volume_difference"
# The metric of each stage, the label of its axis, and its description.
STAGES = {
    "factorization": ("factorization", "F (eq. 7)", "Factorization"),
    "probes": ("probe_r2_ood", "R²", "Linear probes from ID to OOD"),
    "volume": (
        VOLUME,
        "log-volume, OOD - ID - code",
        "Mean log-volume over OOD points less the mean over ID points, and "
        "less the same difference of the code",
    ),
}


def draw_stages(found: PaperFigure, name: str, codes: Sequence[str]) -> Drawn:
    """Plots one of `STAGES`: a panel for each code, a line for a group."""
    metric, ylabel, words = STAGES[name]
    limits = REAL if metric == VOLUME else find_limits(metric)
    curves = {}
    for label, group in found.groups.items():
        code, _, line = label.partition(", ")
        table = group.get_stages(metric)
        if code in codes and table.size:
            if metric == VOLUME:
                table = table.sub(table["code"], axis=0)
            # Networks of one depth have the same stages with both codes.
            curves[f"{code} code", line] = average(table, limits)
    if not curves:
        return {}
    caption = f"{words}, mean over {SEEDS}, with 95 % intervals."
    points = join_curves(curves, "stage")
    return {caption: draw_stage_panels(points, ylabel=ylabel)}


def draw_curve(found: PaperFigure, name: str) -> Drawn:
    """Plots an error over the values of the factor with a gap."""
    curves, ylabel = {}, "MSE over pixels"
    for label, group in found.groups.items():
        errors = group.get_places(f"{name}_mse")
        if errors.notna().any(axis=None):
            angles = group.get_places(f"{name}_values").iloc[0]
            errors.columns = angles.tolist()
            curves[ylabel, label] = average(errors, POSITIVE)
    if not curves:
        return {}
    points, xlabel = join_curves(curves), "angle (degrees)"
    figure = draw_curve_panels(points, xlabel=xlabel, log=[ylabel])
    return {f"MSE at every angle, mean over {SEEDS}, 95 % intervals.": figure}


def draw_search(found: PaperFigure, criterion: str) -> Drawn:
    """Plots thresholds against the size of the grid, with their laws."""
    rows: list[Any] = []
    studies = [
        study
        for study in found.evidence.studies
        if (study.thresholds["criterion"] == criterion).any()
    ]
    for kind in ("bumps", "stripes_and_bumps"):
        tables = [
            study.thresholds[
                (study.thresholds["kind"] == kind)
                & (study.thresholds["criterion"] == criterion)
            ]
            for study in studies
        ]
        # The study with the most sizes, of several the first by its name.
        best = max(tables, key=_count_sizes, default=None)
        if best is not None:
            rows += best.to_dict("records")
    return {e.caption: e.figure for e in make_exhibits(rows) if e.figure}


def _count_sizes(searches: pd.DataFrame) -> int:
    """Counts the sizes of the grid with three seeds or more."""
    seeds = searches.groupby("grid_size")["seed"].nunique()
    return int((seeds >= 3).sum())


def draw_scores(found: PaperFigure, names: Sequence[str]) -> Drawn:
    """Plots scores of all groups, side by side, on logarithmic scales."""
    panels = {
        name: {
            label: scores
            for label, group in found.groups.items()
            if (scores := group.get(name)).notna().any()
        }
        for name in names
    }
    if not all(panels.values()):
        return {}
    caption = f"All {SEEDS} (gray), geometric mean (diamond), 95 % interval."
    return {caption: draw_score_panels(panels)}


def draw_error_map(found: PaperFigure, name: str) -> Drawn:
    """Plots a score over the size of the image and the held-out share."""
    points = []
    for group in found.groups.values():
        mean = estimate_geometric(list_by_seed(group.get(name)))
        if mean is not None:
            splits = make_dataset(make_config(group.flags)).splits
            share = 100 * float(splits.is_ood.mean())
            points.append((group.flags["grid_size"], share, mean.mean))
    if min(len({p[axis] for p in points}) for axis in (0, 1)) < 2:
        return {}  # of a line there are no contours
    labels = ["size of the image (px)", "positions held out (%)", name]
    caption = (
        f"{name}, geometric mean over {SEEDS}. Dots are settings that were "
        "trained; lines have equal errors, interpolated between dots."
    )
    return {caption: draw_contours(pd.DataFrame(points, columns=labels))}


def draw_contours(points: pd.DataFrame) -> Plot:
    """Draws lines of equal numbers; the columns are x, y and the number."""
    figure = exhibits.make_figure((5.6, 4.2), layout="constrained")
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
    return exhibits.finish_figure(figure, "", lambda: points)


def draw_donut() -> Drawn:
    """Plots images of some ID and OOD positions; outlines the region."""
    drawn = {}
    for file in ("donut.flags", "corner.flags"):
        dataset = _make(file)
        splits, images = dataset.splits, {}
        for subset, chosen in (("ID", splits.is_id), ("OOD", splits.is_ood)):
            points = splits.grid[choose_spread(np.flatnonzero(chosen))]
            images[subset] = dataset.render_array(points)
        caption = f"The held-out region {dataset.region.spec} is outlined."
        drawn[caption] = draw_rows(images, mask=get_pixel_mask(dataset))
    return drawn


def draw_stripes() -> Drawn:
    """Plots the training set of stripes alone."""
    dataset = _make("stripes.flags")
    stripes = dataset.splits.train
    rows = {}
    for start in range(0, len(stripes), 14):
        points = stripes[start : start + 14]
        (column,) = np.flatnonzero(np.isfinite(points[0]))
        label = f"{dataset.space.names[column]} from {points[0, column]:g}"
        rows[label] = dataset.render_array(points)
    return {f"All {len(stripes)} stripes.": draw_rows(rows)}


def _make(flagfile: str) -> Dataset:
    return make_dataset(parse_config([f"--flagfile={flagfile}"]))


DATA = {"donut": draw_donut, "stripes": draw_stripes}
DRAWERS: dict[str, Drawer] = {
    "data": lambda _, name: DATA[name](),
    "stages": draw_stages,
    "curve": draw_curve,
    "search": draw_search,
    "contours": draw_error_map,
    "scores": draw_scores,
    "claims": draw_symptoms,
    "cures": draw_cures,
}
