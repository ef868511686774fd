"""Pictures of single units, and of what single outputs are made of.

In reports the explorer has both, at any combination.
"""

import numpy as np
from matplotlib.figure import Figure

from tfcomp.datasets.dataset import restore
from tfcomp.evaluation.pictures import (
    choose_spread,
    describe_points,
    get_pixel_mask,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.tuning_plots import draw_tuning
from tfcomp.report.run_exhibits import list_points, show_run, to_rows


def make_images(study: Study) -> Exhibit:
    """Shows memorized outputs sharing a factor, their sum, and the output."""
    shown = choose_spread(np.flatnonzero(study.splits.is_ood))
    r2 = np.full(len(study.splits.grid), np.nan)
    r2[study.splits.is_ood] = study.superposition.r2["superposition"]
    points = list_points(study, {"r2": r2})
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


def make_units(study: Study, stage: str) -> Exhibit:
    """Draws activation maps and marginals of the most telling units."""
    numbers, tuning = study.numbers[stage], study.tuning[stage]
    dataset, title = study.dataset, f"{study.name}, {stage}"
    units = {
        f"unit {unit}, additive {tuning.additive_share[unit]:.2f}": (
            dataset.make_map(values.ravel())
        )
        for unit, values in zip(numbers.units, numbers.maps, strict=True)
    }
    plane = dataset.planes[0]
    figure = draw_tuning(units, plane, title=title) if units else None
    place = f" with {plane.held}" if plane.held else ""
    shares = tuning.factor_shares[numbers.units]  # [k, F]
    return show_run(
        study,
        f"tuning_{stage}",
        f"Units of {stage}",
        f"Activation of single units over the grid (left{place}) and its mean "
        "as a function of each factor. The first is the unit that varies most; "
        "each further one varies most in what the units before it leave "
        "unexplained. The held-out region is outlined or shaded.",
        figure,
        to_rows(
            {
                "unit": numbers.units,
                "variance": tuning.variance[numbers.units],
                **{
                    f"share_{name}": share
                    for name, share in zip(
                        dataset.space.names, shares.T, strict=True
                    )
                },
            }
        ),
    )


def _mean(images: np.ndarray) -> np.ndarray:
    return images.mean(axis=0) if len(images) else np.zeros(images.shape[1])


def _fit(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    weights = np.linalg.lstsq(regressors, target, rcond=None)[0]
    return regressors @ weights
