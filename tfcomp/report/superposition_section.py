"""Superposition of memorized outputs (section 3.3, figure 1d)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.scores import count_finite_peaks
from tfcomp.analysis.superposition import (
    FAR,
    MAX_MEMORIES,
    MAX_POINTS,
    PREDICTORS,
    compute_superposition,
    score_combinations,
    summarize_superposition,
)
from tfcomp.evaluation.bright_images import restore
from tfcomp.evaluation.pictures import (
    choose_spread,
    describe_planes,
    describe_points,
    get_pixel_mask,
    picture_maps,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row, list_points, show_run


def make_superposition(studies: Sequence[Study]) -> Section:
    """Shows whether OOD outputs are sums of what was memorized."""
    chosen = [study for study in studies if study.has_hole]
    exhibits = [make_table(chosen)] if chosen else []
    for study in chosen:
        exhibits.append(make_images(study))
        if study.has_map and study.splits.is_complete:
            exhibits.append(make_maps(study))
    return Section(
        "superposition",
        "Superposition",
        "Is an output at a held-out position the sum of memorized outputs "
        "that share one of its factors each, as its x and its y? Images are "
        "made bright (background 0; without a background, the mean training "
        "image is taken off). R² is 1 - SSE/SST about zero, so it does not "
        "depend on how faint an output is. A true composer scores near 0. Of "
        f"three factors and more, {MAX_POINTS} held-out points are scored.",
        exhibits,
    )


def make_table(studies: Sequence[Study]) -> Exhibit:
    """Lists R² of every predictor."""
    return Exhibit(
        "superposition",
        "Scores",
        "R² of OOD outputs on predictors made from the model's own ID "
        "outputs, averaged over OOD points. superposition combines the mean "
        "outputs sharing each of the factors; superposition_span combines all "
        f"outputs sharing a factor (at most {MAX_MEMORIES}, those that share "
        "most), with nonnegative weights. The conjunctive predictors combine "
        "as many outputs of the nearest ID points. superposed_inputs combines "
        "what the model draws for the mean codes of the ID points sharing "
        "each factor, as the paper does. multiple_peaks is the share of "
        "outputs with two peaks or more above half of their own maximum, at "
        "least 3 px apart. "
        "The rows of the truth have true bumps in place of OOD "
        f"outputs. The far points are at least {FAR:g} grid steps from ID, "
        "where the bumps of neighbors explain nothing by mere overlap.",
        rows=[row for study in studies for row in list_scores(study)],
    )


def list_scores(study: Study) -> list[Row]:
    """Lists the scores of a run and, for comparison, of a true composer."""
    truth = study.bright_outputs.copy()
    is_ood = study.splits.is_ood
    truth[is_ood] = study.bright_truth[is_ood]
    space = study.dataset.space
    composer = compute_superposition(study.splits.grid, truth, is_ood, space)
    compared = {
        "model": (study.superposition, study.bright_outputs),
        "truth": (composer, truth),
    }
    rows = []
    for name, (scores, outputs) in compared.items():
        inputs = score_inputs(study, outputs)
        is_multiple = find_multiple(study, outputs)
        for points, distance in (("all", 0.0), ("far", FAR)):
            summary = summarize_superposition(scores, distance)
            chosen = scores.distance >= distance
            rows.append(
                {
                    "run": study.name,
                    "OOD outputs": name,
                    "points": points,
                    **{key: summary[f"{key}_r2"] for key in PREDICTORS},
                    "superposed_inputs": mean_or_none(
                        inputs[chosen & np.isfinite(inputs)]
                    ),
                    "multiple_peaks": mean_or_none(is_multiple[chosen]),
                    "blank_fraction": summary["blank_fraction"],
                }
            )
    return rows


def score_inputs(study: Study, outputs: np.ndarray) -> np.ndarray:
    """R² of OOD outputs on images of superposed inputs, [n_ood] or NaN."""
    unseen = outputs[study.splits.is_ood]
    if study.superposed_inputs is None:
        return np.full(len(unseen), np.nan)
    known = outputs[study.splits.is_id]
    return score_combinations(unseen, study.superposed_inputs, known)


def find_multiple(study: Study, outputs: np.ndarray) -> np.ndarray:
    """Which OOD outputs have several peaks, [n_ood]; NaN without positions."""
    unseen = outputs[study.splits.is_ood]
    if not study.dataset.has_position:
        return np.full(len(unseen), np.nan)
    images = unseen.reshape(-1, *study.dataset.image_shape)
    counts = count_finite_peaks(images, "bright")
    return np.where(np.isfinite(counts), counts > 1, np.nan)


def make_images(study: Study) -> Exhibit:
    """Shows memorized outputs sharing a factor, their sum, and the output."""
    shown = choose_spread(np.flatnonzero(study.splits.is_ood))
    points = list_points(study, {"r2": _spread(study, "superposition")})
    return show_run(
        study,
        "superposition_images",
        "What an output is made of",
        "Rows at held-out positions (titles): the mean ID output with the "
        "same value of a factor, for each of them, the best combination of "
        "these, that of what the model draws for the mean codes of the same "
        "points (the published form of figure 1d, where the model has a code "
        "that can be averaged), the model's output, and the truth. Each image "
        "is scaled to its own maximum, since outputs can be faint; images "
        "without a background are not.",
        draw_images(study, shown),
        [points[row] for row in shown],
    )


def draw_images(study: Study, shown: np.ndarray) -> Figure:
    """Draws the rows of images for some OOD points."""
    outputs, grid = study.bright_outputs, study.splits.grid
    known = study.splits.is_id
    names = [f"ID, same {name}" for name in study.dataset.space.names]
    images: dict[str, list] = {name: [] for name in [*names, "superposed"]}
    for row in shown:
        means = [
            _mean(outputs[known & (values == values[row])]) for values in grid.T
        ]
        combined = _fit(np.stack(means, axis=1), outputs[row])
        for label, image in zip(images, (*means, combined), strict=True):
            images[label].append(image)
    if study.superposed_inputs is not None:
        place = np.cumsum(study.splits.is_ood) - 1  # among OOD points
        images["superposed inputs"] = [
            _fit(study.superposed_inputs[place[row]].T, outputs[row])
            for row in shown
        ]
    images |= {"output": outputs[shown], "truth": study.bright_truth[shown]}
    return draw_rows(
        {
            label: restore(study.dataset, np.stack(stack))
            for label, stack in images.items()
        },
        grid[shown] if study.dataset.has_position else None,
        get_pixel_mask(study.dataset),
        title=study.name,
        first_row=study.dataset.first_row,
        column_titles=describe_points(study.dataset, shown),
    )


def make_maps(study: Study) -> Exhibit:
    """Maps R² of the main predictor and of its rival over OOD points."""
    maps = {n: _spread(study, n) for n in ("superposition", "conjunctive")}
    return show_run(
        study,
        "superposition_map",
        "Where outputs superpose",
        "R² of the output at held-out points on as many memorized means: "
        "those of the ID points that share each factor (left), and those of "
        "the nearest ID points (right). ID points and blank outputs are gray."
        + describe_planes(study.dataset),
        picture_maps(study.dataset, maps, "R²", study.name, limits=(0.0, 1.0)),
        list_points(study, maps),
    )


def _spread(study: Study, name: str) -> np.ndarray:
    """Returns R² of a predictor at every grid point, [n]; NaN for ID."""
    values = np.full(len(study.splits.grid), np.nan)
    values[study.splits.is_ood] = study.superposition.r2[name]
    return values


def _mean(images: np.ndarray) -> np.ndarray:
    return images.mean(axis=0) if len(images) else np.zeros(images.shape[1])


def _fit(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    weights = np.linalg.lstsq(regressors, target, rcond=None)[0]
    return regressors @ weights
