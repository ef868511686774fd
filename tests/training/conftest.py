"""Trainings without what surrounds them: no scores, no export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.training.experiment import make_training_model
from tfcomp.training.fit import fit_model
from tfcomp.training.strategy import make_strategy


@pytest.fixture(scope="session")
def fit() -> Callable[..., keras.Model]:
    """Trains what flags describe, with the state in a folder."""

    def train(
        flags: list[str], folder: Path, *callbacks: keras.callbacks.Callback
    ) -> keras.Model:
        config = parse_config([*flags, "--checkpoint_seconds=0"])
        dataset = make_dataset(config)
        model = make_training_model(config, dataset, make_strategy())
        fit_model(model, dataset, config, str(folder), callbacks)
        return model

    return train


@pytest.fixture(scope="session")
def falling_rate() -> list[str]:
    """A rate so large that the loss stops falling within a few epochs."""
    return [
        "--flagfile=rotated_mnist.flags",
        "--digit_source=stand_in",
        "--num_angles=25",
        "--width=4",
        "--batch_size=8",
        "--learning_rate=0.5",
        "--plateau_patience=1",
        "--epochs=9",
    ]
