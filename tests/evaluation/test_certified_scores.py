"""R^2 of certified and of other held-out combinations, apart."""

import numpy as np
import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.evaluation.point_scores import Evaluation
from tfcomp.evaluation.reference_scores import compute_r2, score_certified

SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,8,8"
).split()


def make(region: str, *flags: str) -> Dataset:
    config = parse_config([*SPRITES, f"--region={region}", *flags])
    return make_dataset(config)


def evaluate(dataset: Dataset, images: np.ndarray) -> dict[str, float | None]:
    truth = dataset.render_array(dataset.splits.grid)
    certificate = certify_dataset(dataset)[1]
    return score_certified(dataset, Evaluation(images, truth, {}), certificate)


def test_r2_is_one_of_the_truth_and_zero_of_the_mean() -> None:
    truth = np.random.default_rng(0).random((5, 4, 4, 1))
    mean = np.broadcast_to(truth.mean(axis=0), truth.shape)
    assert compute_r2(truth, truth) == 1
    assert compute_r2(mean, truth) == pytest.approx(0)
    noise = 0.1 * np.random.default_rng(1).normal(size=truth.shape)
    total = sum(((image - truth.mean(0)) ** 2).sum() for image in truth)
    by_hand = 1 - (noise**2).sum() / total
    assert compute_r2(truth + noise, truth) == pytest.approx(by_hand)


def test_there_is_none_without_spread_or_with_nan() -> None:
    alike, truth = np.ones((3, 2, 2, 1)), np.eye(4).reshape(4, 2, 2, 1)
    assert compute_r2(alike, alike) is None
    assert compute_r2(np.full_like(truth, np.nan), truth) is None


def test_errors_count_where_they_are() -> None:
    """Wrong on others alone: certified 1, others below, ood between."""
    dataset = make("wiedemer:diagonal:.4")
    found = certify_dataset(dataset)[1]
    ood = dataset.splits.is_ood
    images = dataset.render_array(dataset.splits.grid)
    images[ood & ~found.certified] = 0
    scores = evaluate(dataset, images)
    assert scores["id"] == scores["certified"] == 1
    assert scores["others"] < 0 < scores["ood"] < 1
