"""R^2 of a decoder's images, of certified and other combinations apart."""

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.certificate import Certificate
from tfcomp.datasets.solvable import mark_certified
from tfcomp.evaluation.point_scores import Evaluation


def score_certified(
    dataset: Dataset, evaluation: Evaluation, certificate: Certificate | None
) -> dict[str, float | None]:
    """R^2 over the points of the grid, for `metrics.json`.

    Args:
        dataset: Of the run.
        evaluation: Outputs and truth over the grid.
        certificate: Of order 1, `tfcomp.datasets.solvable.certify_dataset`.

    Returns:
        R^2 of `id`, of `ood` and, among the held-out points, of `certified`
        ones and `others`: those that exist. See `compute_r2`.
    """
    splits = dataset.splits
    rows = {"id": splits.is_id, "ood": splits.is_ood}
    if certificate is not None:
        marks = mark_certified(dataset, certificate)
        rows |= {"certified": marks == 1, "others": marks == 0}
    return {
        name: compute_r2(evaluation.images[chosen], evaluation.truth[chosen])
        for name, chosen in rows.items()
        if chosen.any()
    }


def compute_r2(images: np.ndarray, truth: np.ndarray) -> float | None:
    """1 minus the squared error over that of the mean of the true images.

    Args:
        images: Outputs [n, H, W, C].
        truth: What they should be.

    Returns:
        At most 1. None if the true images are all alike, or an output is not
        finite.
    """
    wrong = np.square(images - truth, dtype=np.float64).sum()
    spread = np.square(truth - truth.mean(axis=0), dtype=np.float64).sum()
    if not spread or not np.isfinite(wrong):
        return None
    return float(1 - wrong / spread)
