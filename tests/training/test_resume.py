"""Resume: an interrupted run ends in the bits of one that was not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.training.experiment import make_training_model
from tfcomp.training.fit import fit_model
from tfcomp.training.strategy import make_strategy


class StopAt(keras.callbacks.Callback):
    """Interrupts training in the middle of an epoch."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self._epoch = epoch
        self._now = -1

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._now = epoch

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        if self._now == self._epoch:
            raise KeyboardInterrupt


@pytest.fixture
def config(smoke_config: RunConfig) -> RunConfig:
    training = dataclasses.replace(smoke_config.training, epochs=4)
    return dataclasses.replace(
        smoke_config, training=training, checkpoint_seconds=0.0
    )


def fit(config: RunConfig, folder: Path, *callbacks) -> list[np.ndarray]:
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    fit_model(model, dataset, config, str(folder), callbacks)
    return model.get_weights()


@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_resume_is_exact(config: RunConfig, tmp_path: Path, epoch: int) -> None:
    undisturbed = fit(config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit(config, tmp_path / "parts", StopAt(epoch))
    resumed = fit(config, tmp_path / "parts")
    for first, second in zip(undisturbed, resumed, strict=True):
        np.testing.assert_array_equal(first, second)


def test_resume_does_not_train_again(config: RunConfig, tmp_path: Path) -> None:
    first = fit(config, tmp_path / "run")
    second = fit(config, tmp_path / "run", StopAt(3))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_corrupt_checkpoint_is_one_line(
    config: RunConfig, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    fit(config, folder)
    for file in folder.glob("*.data-*"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunError, match="cannot be read"):
        fit(config, folder)
