"""Superposition of memorized outputs (section 3.3, figure 1d)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tfcomp.analysis.superposition import FAR
from tfcomp.analysis.superposition import PREDICTORS
from tfcomp.analysis.superposition import SuperpositionScores
from tfcomp.analysis.superposition import compute_superposition
from tfcomp.analysis.superposition import summarize_superposition
from tfcomp.evaluation.pictures import choose_spread
from tfcomp.evaluation.pictures import get_pixel_mask
from tfcomp.evaluation.pictures import get_region_mask
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_maps
from tfcomp.figures import draw_rows
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.setting_tables import list_points


def make_superposition(studies: Sequence[Study]) -> Section:
    """Whether OOD outputs are sums of what was memorized."""
    chosen = [s for s in studies if s.has_hole]
    exhibits = []
    rows = []
    for study in chosen:
        scores = study.superposition
        rows += make_rows(study, scores)
        exhibits.append(make_images(study, scores))
        exhibits.append(make_maps(study, scores))
    if rows:
        exhibits.insert(0, make_table(rows))
    return Section(
        "superposition",
        "Superposition",
        "Is an output at a held-out position the sum of memorized outputs "
        "that share its x and of those that share its y? Images are bright "
        "(background 0); R² is 1 - SSE/SST about zero, so it does not "
        "depend on how faint an output is. A true composer scores near 0.",
        exhibits,
    )


def make_table(rows: list[dict[str, Any]]) -> Exhibit:
    """R² of every predictor."""
    return Exhibit(
        "superposition",
        "Scores",
        "R² of OOD outputs on predictors made from the model's own ID "
        "outputs, mean over OOD points: superposition (mean output sharing "
        "x, mean output sharing y), its span (all outputs sharing x or y, "
        "nonnegative weights), and, with as many regressors each, "
        "conjunctive ones (the nearest ID points). The truth rows put true "
        f"bumps in place of OOD outputs. far: at least {FAR:g} grid steps "
        "from ID, where neighbours' bumps explain nothing by mere overlap.",
        rows=rows,
    )


def make_rows(
    study: Study, scores: SuperpositionScores
) -> list[dict[str, Any]]:
    """Summaries of a run and, for comparison, of a true composer."""
    composed = study.bright_outputs.copy()
    is_ood = study.splits.is_ood
    composed[is_ood] = study.bright_truth[is_ood]
    composer = compute_superposition(study.splits.grid, composed, is_ood)
    rows = []
    for outputs, result in (("model", scores), ("truth", composer)):
        for points, distance in (("all", 0.0), ("far", FAR)):
            summary = summarize_superposition(result, distance)
            rows.append(
                {
                    "run": study.name,
                    "OOD outputs": outputs,
                    "points": points,
                    **{p: summary[f"{p}_r2"] for p in PREDICTORS},
                    "blank_fraction": summary["blank_fraction"],
                }
            )
    return rows


def make_images(study: Study, scores: SuperpositionScores) -> Exhibit:
    """Memorized outputs sharing x and y, their sum, and the output."""
    ood = np.flatnonzero(study.splits.is_ood)
    shown = choose_spread(ood)
    points = list_points(study, {})
    rows = [
        {**points[row], "r2": float(scores.r2["superposition"][place])}
        for place, row in enumerate(ood)
        if row in shown
    ]
    return Exhibit(
        f"{study.name}_superposition_images",
        f"What an output is made of: {study.name}",
        "At held-out positions (column titles, px): mean ID output with the "
        "same x, the same with the same y, their best combination, and the "
        "model's output; the last row is the truth. Each image is scaled "
        "to its own maximum, since outputs can be faint.",
        draw_images(study, shown),
        rows,
    )


def draw_images(study: Study, shown: np.ndarray) -> Figure:
    """The rows of images for some OOD points."""
    outputs, grid = study.bright_outputs, study.splits.grid
    rows, columns, _ = study.dataset.image_shape
    known = study.splits.is_id
    sharing = [
        np.stack(
            [
                _mean(outputs[known & (grid[:, column] == value)])
                for value in grid[shown, column]
            ]
        )
        for column in range(2)
    ]
    combined = np.stack(
        [
            _fit(np.stack([x, y], axis=1), target)
            for x, y, target in zip(*sharing, outputs[shown], strict=True)
        ]
    )
    images = {
        "ID, same x": sharing[0],
        "ID, same y": sharing[1],
        "superposed": combined,
        "output": outputs[shown],
        "truth": study.bright_truth[shown],
    }
    return draw_rows(
        {
            label: _normalize(stack).reshape(-1, rows, columns)
            for label, stack in images.items()
        },
        grid[shown] if study.dataset.has_position else None,
        get_pixel_mask(study.dataset),
        title=study.name,
    )


def make_maps(study: Study, scores: SuperpositionScores) -> Exhibit:
    """R² of the main predictor and of its rival at every OOD point."""
    shape = study.dataset.space.shape
    maps = {}
    for name in ("superposition", "conjunctive"):
        values = np.full(len(study.splits.grid), np.nan)
        values[study.splits.is_ood] = scores.r2[name]
        maps[name] = values
    x, y = study.dataset.space
    figure = draw_maps(
        {name: values.reshape(shape) for name, values in maps.items()},
        get_region_mask(study.dataset),
        title=study.name,
        label="R²",
        limits=(0.0, 1.0),
        axis_names=(x.label, y.label),
        panel_size=3.0,
    )
    return Exhibit(
        f"{study.name}_superposition_map",
        f"Where outputs superpose: {study.name}",
        "R² of the output at every held-out point on two memorized means: "
        "those sharing x and y (left), those of the nearest ID points "
        "(right). Grey: ID, or a blank output.",
        figure,
        list_points(study, maps),
    )


def _mean(images: np.ndarray) -> np.ndarray:
    return images.mean(axis=0) if len(images) else np.zeros(images.shape[1])


def _fit(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    weights = np.linalg.lstsq(regressors, target, rcond=None)[0]
    return regressors @ weights


def _normalize(images: np.ndarray) -> np.ndarray:
    largest = np.abs(images).max(axis=1, keepdims=True)
    return images / np.where(largest > 0, largest, 1.0)
