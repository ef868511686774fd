"""Scores of a model that was pushed before, on the data of a new run."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.config.errors import RunError
from tfcomp.config.plugins import admit_plugins
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.evaluation.point_scores import score_subsets
from tfcomp.storage.run_folder import check_run


def score_pushed_model(version: Path, run: Path) -> dict[str, float | None]:
    """Scores such as `ood_mse` of a SavedModel over the grid of a run.

    Raises:
        RunError: If the model cannot be loaded, or takes other factors or
            draws other images than the run.
    """
    config = check_run(run)
    admit_plugins(run, config.plugins)
    dataset = make_dataset(config)
    dataset.prepare()
    images = draw_grid(version, dataset)
    truth = dataset.render_array(dataset.splits.grid)
    if images.shape != truth.shape:
        raise RunError(
            f"{version} was pushed under this name and draws images of "
            f"{list(images.shape[1:])}, not {list(truth.shape[1:])}: push "
            "under another name"
        )
    splits = dataset.splits
    subsets = {"id": splits.is_id, "ood": splits.is_ood}
    scores = score_subsets(dataset, images, truth, subsets)
    return {
        f"{subset}_{name}": value
        for subset, values in scores.items()
        for name, value in values.items()
    }


def draw_grid(version: Path, dataset: Dataset) -> np.ndarray:
    """Images of a SavedModel at every grid point, [n, H, W, C].

    Raises:
        RunError: If it cannot be loaded, or takes other factors.
    """
    try:
        model = tf.saved_model.load(str(version))  # keeps the variables
        draw = model.signatures["serving_default"]
        found = evaluate_in_batches(
            lambda factors: draw(factors=factors), dataset.splits.grid
        )
    except Exception as error:  # whatever a damaged or foreign model leads to
        reason = str(error).strip().splitlines()[-1]
        raise RunError(
            f"{version} was pushed under this name and cannot be asked for "
            f"the images of this run ({reason}): push under another name, or "
            "remove it if it is damaged"
        ) from error
    return found["image"]
