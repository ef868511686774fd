"""Resume: an interrupted run ends in the bits of one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.errors import RunError

SMOKE = ["--flagfile=smoke.flags", "--epochs=4"]
Fit = Callable[..., keras.Model]


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


def check_equal(first: keras.Model, second: keras.Model) -> None:
    """Weights, moving averages, and the optimizer with its rate."""
    pairs = zip(
        [*first.variables, *first.optimizer.variables],
        [*second.variables, *second.optimizer.variables],
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.fixture(scope="module")
def smoke(fit: Fit, tmp_path_factory: pytest.TempPathFactory) -> keras.Model:
    return fit(SMOKE, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def reduced(
    fit: Fit,
    falling_rate: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> keras.Model:
    """A training whose learning rate was reduced."""
    model = fit(falling_rate, tmp_path_factory.mktemp("whole"))
    assert float(model.optimizer.learning_rate.numpy()) < 0.5
    return model


@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_resume_is_exact(
    smoke: keras.Model, fit: Fit, tmp_path: Path, epoch: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(SMOKE, tmp_path, StopAt(epoch))
    check_equal(smoke, fit(SMOKE, tmp_path))


@pytest.mark.parametrize("epoch", [1, 3, 4, 6])
def test_resume_with_a_plateau_is_exact(
    reduced: keras.Model,
    fit: Fit,
    falling_rate: list[str],
    tmp_path: Path,
    epoch: int,
) -> None:
    """The schedule's memory and the normalization are restored as well."""
    with pytest.raises(KeyboardInterrupt):
        fit(falling_rate, tmp_path, StopAt(epoch))
    check_equal(reduced, fit(falling_rate, tmp_path))


def test_resume_does_not_train_again(fit: Fit, tmp_path: Path) -> None:
    first = fit(SMOKE, tmp_path)
    check_equal(first, fit(SMOKE, tmp_path, StopAt(3)))


def test_corrupt_checkpoint_is_one_line(fit: Fit, tmp_path: Path) -> None:
    fit(SMOKE, tmp_path)
    for file in tmp_path.glob("*.data-*"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunError, match="cannot be read"):
        fit(SMOKE, tmp_path)
