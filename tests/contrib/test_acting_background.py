"""The background that the acting decoder has as a constant."""

from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tests.representations.several_images import COMBINATIONS
from tfcomp.config.run_flags import parse_config
from tfcomp.contrib.acting.first_poses import find_background
from tfcomp.datasets import make_dataset
from tfcomp.training import prepared_models


def test_models_of_another_background_are_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It depends on the training images, which the seed chooses."""
    monkeypatch.setattr(prepared_models, "_kept", {})
    images = np.random.default_rng(0).random((12, 8, 8))
    classes = np.argwhere(np.ones((3, 4)))
    np.savez(tmp_path / "own.npz", images=images, classes=classes)
    flags = f"--dataset=table --data={tmp_path / 'own.npz'} --num_train=4"
    flags += " --region=factor_0:2,factor_1:3 --model=acting --candidates=1"
    grounds = []
    for seed in (0, 1):
        config = parse_config(
            [*flags.split(), "--encoding=one_hot", f"--seed={seed}"]
        )
        dataset = make_dataset(config)
        with prepared_models.prepare_models(
            config, dataset, prepared_models.make_strategy()
        ) as models:
            draw = models.trained.get_layer("image")
        assert draw.background == find_background(dataset).tolist()
        grounds.append(draw.background)
    assert grounds[0] != grounds[1]


def test_the_ground_is_one_of_single_images() -> None:
    """Objects at random places leave no pixel of a mean untouched."""
    rng = np.random.default_rng(0)
    images = np.full((6 * 40, 8, 8), 0.25, np.float32)
    for image in images:
        row, column = rng.integers(0, 5, 2)
        image[row : row + 4, column : column + 4] = 1
    classes = np.repeat(COMBINATIONS, 40, axis=0)
    table = tfcomp.FactorTable(images, classes)
    moving = tfcomp.evaluate(table.draw, table).dataset
    assert find_background(moving).tolist() == [0.25]
