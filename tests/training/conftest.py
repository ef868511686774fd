"""Trainings without what surrounds them, and what runs have shown."""

from collections.abc import Callable, Iterable
from pathlib import Path

import keras
import pytest
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.training.fit import fit_model
from tfcomp.training.prepared_models import make_strategy, make_training_model


@pytest.fixture(scope="session")
def fit() -> Callable[..., keras.Model]:
    """Trains what flags describe, with the state in a folder."""

    def train(
        flags: Iterable[str], folder: Path, *callbacks: keras.callbacks.Callback
    ) -> keras.Model:
        config = parse_config([*flags, "--checkpoint_seconds=0"])
        dataset = make_dataset(config)
        model = make_training_model(config, dataset, make_strategy())
        fit_model(model, dataset, config, str(folder), callbacks)
        return model

    return train


@pytest.fixture(scope="session")
def read_events() -> Callable[[RunConfig], EventAccumulator]:
    """All steps that a run has shown in TensorBoard."""

    def read(config: RunConfig) -> EventAccumulator:
        return EventAccumulator(config.run_dir, {"tensors": 0}).Reload()

    return read
