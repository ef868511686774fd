"""Trainings without what surrounds them, and what runs have shown."""

from collections.abc import Callable, Iterable
from pathlib import Path

import keras
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.training.fit import fit_model
from tfcomp.training.prepared_models import make_strategy, make_training_model


def list_variables(model: keras.Model) -> list[keras.Variable]:
    """Weights, moving averages, random states, and the optimizer's."""
    return model.variables + model.optimizer.variables


def copy_state(model: keras.Model) -> list[np.ndarray]:
    return [variable.numpy() for variable in list_variables(model)]


@pytest.fixture(scope="module")
def fit() -> Callable[..., keras.Model]:
    """Trains what flags describe, with the state in a folder.

    Tracing takes longer than to train: the same flags give the same model,
    which starts anew each time.
    """
    prepared: dict[tuple[str, ...], tuple] = {}

    def prepare(flags: tuple[str, ...]) -> tuple:
        config = parse_config([*flags, "--checkpoint_seconds=0"])
        dataset = make_dataset(config)
        model = make_training_model(config, dataset, make_strategy())
        return config, dataset, model, copy_state(model)

    def train(
        flags: Iterable[str], folder: Path, *callbacks: keras.callbacks.Callback
    ) -> keras.Model:
        key = tuple(flags)
        if key not in prepared:
            prepared[key] = prepare(key)
        config, dataset, model, start = prepared[key]
        variables = list_variables(model)
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        fit_model(model, dataset, config, str(folder), callbacks)
        return model

    return train


@pytest.fixture(scope="session")
def read_events() -> Callable[[RunConfig], EventAccumulator]:
    """All steps that a run has shown in TensorBoard."""

    def read(config: RunConfig) -> EventAccumulator:
        return EventAccumulator(config.run_dir, {"tensors": 0}).Reload()

    return read
