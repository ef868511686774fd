"""Resume: an interrupted run ends in the bits of one that was not."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.training.conftest import copy_state
from tfcomp.config.errors import RunError
from tfcomp.training.fit import TrainingState

SMOKE = (
    "--flagfile=smoke.flags",
    "--grid_size=8",
    "--region=square:3-4",
    "--model=mlp",
    "--depth=1",
    "--width=4",
    "--epochs=4",
    "--steps_per_epoch=9",
)
# A rate so large that the loss stops falling within a few epochs.
FALLING_RATE = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=25",
    "--width=4",
    "--batch_size=8",
    "--learning_rate=0.5",
    "--plateau_patience=1",
    "--epochs=9",
)
ACTING = (
    "--flagfile=acting.flags",
    "--grid_size=8",
    "--sprite_sizes=2,1,2,3,3",
    "--region=random:.2",
    "--candidates=2",
    "--epochs=4",
    "--steps_per_epoch=4",
)


class StopAfter(keras.callbacks.Callback):
    """Interrupts training in the middle of the next epoch."""

    def __init__(self, epochs: int):
        super().__init__()
        self._left = epochs

    def on_epoch_end(self, epoch: int, logs: dict | None = None):
        self._left -= 1

    def on_train_batch_end(self, batch: int, logs: dict | None = None):
        if self._left == 0:
            raise KeyboardInterrupt


def check_state(model: keras.Model, expected: list[np.ndarray]):
    """Compares the bits of a trained model with a copied state."""
    for value, other in zip(copy_state(model), expected, strict=True):
        np.testing.assert_array_equal(value, other)


@pytest.fixture(scope="module")
def fit_whole(fit, tmp_path_factory) -> Callable[..., tuple]:
    """Trains without an interruption, once for all tests."""

    @functools.cache
    def train(flags: tuple[str, ...]) -> tuple[list[np.ndarray], Path]:
        folder = tmp_path_factory.mktemp("whole")
        return copy_state(fit(flags, folder)), folder

    return train


@pytest.mark.parametrize(
    ("flags", "stops"),
    [
        (SMOKE, (0, 2)),
        pytest.param(FALLING_RATE, (4,), marks=pytest.mark.slow),
        pytest.param(ACTING, (2,), marks=pytest.mark.slow),
    ],
)
def test_resume_is_exact(flags, stops, fit_whole, fit, tmp_path):
    """The memory of a schedule and the normalization are restored as well."""
    expected, _ = fit_whole(flags)
    for epochs in stops:  # so many more in each session
        with pytest.raises(KeyboardInterrupt):
            fit(flags, tmp_path, StopAfter(epochs))
    resumed = fit(flags, tmp_path)

    check_state(resumed, expected)
    if flags == FALLING_RATE:  # the plateau is reached
        assert resumed.optimizer.learning_rate.numpy() < 0.5


def make_dropout() -> keras.Model:
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def test_random_layers_go_on_where_they_were(tmp_path, rng):
    x = rng.normal(size=(16, 4))

    def train(model: keras.Model):
        model.fit(
            x,
            x[:, 0],
            shuffle=False,
            verbose=0,
        )

    whole = make_dropout()
    state = TrainingState(whole, str(tmp_path))
    assert state.restore() == 0
    train(whole)
    state.save(1)
    train(whole)

    resumed = make_dropout()
    assert TrainingState(resumed, str(tmp_path)).restore() == 1
    train(resumed)

    check_state(resumed, copy_state(whole))


def test_what_is_finished_trains_no_more_and_must_be_whole(
    fit_whole, fit, tmp_path
):
    expected, finished = fit_whole(SMOKE)
    folder = shutil.copytree(finished, tmp_path / "copy")

    again = fit(SMOKE, folder, StopAfter(0))

    check_state(again, expected)
    for file in folder.glob("*.data-*"):
        content = file.read_bytes()
        file.write_bytes(content[:100])
    with pytest.raises(RunError, match="cannot be read"):
        fit(SMOKE, folder)


@pytest.mark.slow
def test_without_the_newest_checkpoint(fit_whole, fit, tmp_path, capsys):
    """A kill may cut the file off that is written; the other one is used."""
    expected, _ = fit_whole(SMOKE)
    with pytest.raises(KeyboardInterrupt):
        fit(SMOKE, tmp_path, StopAfter(3))
    stems = {file.stem for file in tmp_path.glob("*.index")}
    assert stems == {"ckpt-2", "ckpt-3"}
    (tmp_path / "ckpt-4_temp").mkdir()  # of a kill
    (tmp_path / "ckpt-3.data-00000-of-00001").write_bytes(b"short")
    epochs: list[int] = []
    record = keras.callbacks.LambdaCallback(
        lambda epoch, _: epochs.append(epoch + 1)
    )

    resumed = fit(SMOKE, tmp_path, record)

    check_state(resumed, expected)
    assert epochs == [3, 4]
    error = capsys.readouterr().err
    assert "ckpt-3" in error
    assert "epoch 2" in error
    stems = {file.stem for file in tmp_path.glob("*")}
    assert stems == {"ckpt-3", "ckpt-4"}
