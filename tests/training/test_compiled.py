"""Compiled training: an epoch as one XLA program, against ordinary steps.

XLA needs seconds for the smallest convolution on a CPU, so networks are tiny.
"""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training.test_resume import check_equal
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.batches import make_training_table
from tfcomp.models import MODELS, forced_rendering
from tfcomp.models.forced_rendering import LowRankEmbedding
from tfcomp.training import fit as fitting
from tfcomp.training.prepared_models import (
    make_strategy,
    make_training_model,
    to_train_model,
)

TINY = ("--epochs=5", "--steps_per_epoch=10", "--batch_size=8", "--width=2")
CNN = ("--flagfile=smoke.flags", "--grid_size=8", "--region=square:3-4", *TINY)
VARIED = ("--noise=0.05", "--decay=linear", "--clip_norm=1")
LOW_RANK = (
    "--flagfile=low_rank.flags",
    *VARIED,
    "--grid_size=6",
    "--region=corner:2",
    "--rank=3",
    "--depth=1",
    *TINY,
)
MLP = (*CNN, "--model=mlp", "--depth=1")
SLOTS = ("--flagfile=smoke.flags", "--grid_size=6", "--region=square:2-3")
SLOTS = (*SLOTS, "--model=slots", "--encoding=one_hot", *TINY)
ACTING = (
    "--flagfile=acting.flags",
    "--grid_size=6",
    "--sprite_sizes=2,1,2,3,3",
    "--region=random:.2",
    "--candidates=2",
)
Fit = Callable[..., keras.Model]


class Losses(keras.callbacks.Callback):
    """The loss of every epoch, as callbacks of users see it."""

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.found: list[float] = []

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.found.append(logs["loss"])


@pytest.mark.parametrize(
    "flags",
    [
        (*CNN, *VARIED),
        pytest.param(LOW_RANK, marks=pytest.mark.slow),
        pytest.param(SLOTS, marks=pytest.mark.slow),
    ],
)
def test_compiled_training_agrees(
    flags: tuple[str, ...], fit: Fit, tmp_path: Path
) -> None:
    """After 50 steps, with penalties; losses reach callbacks as before."""
    old, new = Losses(), Losses()
    ordinary = fit((*flags, "--compiled=never"), tmp_path / "never", old)
    program = fit((*flags, "--compiled=always"), tmp_path / "always", new)
    pairs = zip(ordinary.get_weights(), program.get_weights(), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    assert program.optimizer.iterations.numpy() == 50
    np.testing.assert_allclose(new.found, old.found, rtol=1e-4)
    assert len(new.found) == 5


class ReadsEvery(Losses):
    """Reads weights after every second epoch, and may be killed there."""

    def __init__(self, killed_after: int = 0) -> None:
        super().__init__()
        self._killed_after = killed_after

    def reads_weights(self, done: int) -> bool:
        return not done % 2

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch + 1 == self._killed_after:
            raise KeyboardInterrupt


def test_epochs_of_one_call_give_the_same_bits(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two epochs a call or one, also when killed between and resumed."""
    flags = (*MLP, "--compiled=always")
    mlp = MODELS.get("mlp")

    def build(*of_run: Any) -> keras.Model:
        model, noise = mlp.target(*of_run), keras.layers.GaussianNoise(0.1)
        return keras.Model(model.input, noise(model.output, training=True))

    monkeypatch.setitem(MODELS._entries, "mlp", mlp._replace(target=build))
    whole, killed, resumed = Losses(), ReadsEvery(3), ReadsEvery()
    expected = fit(flags, tmp_path / "whole", whole)
    with pytest.raises(KeyboardInterrupt):
        fit(flags, tmp_path / "cut", killed)
    assert killed.found == whole.found[:3]
    check_equal(expected, fit(flags, tmp_path / "cut", resumed))
    assert resumed.found == whole.found[2:]  # no checkpoint within a call


@pytest.mark.parametrize(
    ("due", "first", "expected"),
    [([], 0, 12), ([4, 8], 0, 4), ([4, 8], 2, 2), ([5], 0, 1), ([6], 6, 6)],
)
def test_calls_end_where_weights_are_read(
    due: list[int], first: int, expected: int
) -> None:
    reader = ReadsEvery()
    reader.reads_weights = due.__contains__
    epochs = range(first, 12)
    assert fitting.count_span([reader], epochs, 10) == expected
    assert fitting.count_span([reader, Losses()], epochs, 10) == 1
    assert fitting.count_span([reader], epochs, 600) == 1


def make_program(name: str) -> str:
    """XLA's input for a registered decoder; nothing is compiled."""
    flags = ACTING if name == "acting" else SLOTS
    if name in ("low_rank", "hard_rendering"):
        flags = LOW_RANK
    elif name in ("cnn", "rotation"):
        flags = CNN
    if name in ("attention", "coordinate", "film", "transformer"):
        flags = (*flags, "--width=8")
    small = f"--model={name}", "--region=random:.2", "--grid_size=8"
    config = parse_config([*flags, *small])
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    table = make_training_table(dataset)
    rows = tf.zeros([1, 2, 4], tf.int64)
    return model.train_epochs.experimental_get_compiler_ir(rows, *table)(
        stage="hlo"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS.names())
def test_every_decoder_becomes_a_program(name: str) -> None:
    text = make_program(name)
    assert "while" in text and "HloModule" in text


def test_products_are_exact_without_tensor_float_32() -> None:
    """No factor is rounded to ten bits on a GPU."""
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    try:
        tf.config.experimental.enable_tensor_float_32_execution(False)
        text = make_program("cnn")
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)
    products = re.findall(r".* (?:convolution|dot)\(.*", text)
    assert products
    assert all("highest,highest" in line for line in products)


def test_products_look_up_what_take_does(rng: np.random.Generator) -> None:
    """Values to the bit, also absent ones; gradients up to rounding."""
    layer = LowRankEmbedding(5, (4, 3), 2)
    index = tf.constant([0.0, 3.0, np.nan, 3.0, 7.0])
    layer(index)
    found = {}
    for use in (False, True):
        with forced_rendering.use_products() if use else tf.name_scope("plain"):
            with tf.GradientTape() as tape:
                image = layer(index)
                loss = tf.reduce_sum(image**2)
            gradients = tape.gradient(loss, layer.trainable_variables)
        found[use] = [image, *map(tf.convert_to_tensor, gradients)]
    np.testing.assert_array_equal(found[False][0], found[True][0])
    for one, other in zip(found[False], found[True], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_when_steps_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one GPU, if the table fits; on request; never with replicas."""
    config = parse_config(LOW_RANK)
    dataset, strategy = make_dataset(config), make_strategy()

    def ask(choice: str, gpus: int = 0, memory: int = 2**40) -> bool:
        devices = ["GPU"] * gpus
        monkeypatch.setattr(
            tf.config, "list_physical_devices", lambda kind: devices
        )
        monkeypatch.setattr(fitting, "count_device_memory", lambda: memory)
        flags = parse_config([*LOW_RANK, f"--compiled={choice}"])
        return fitting.is_compiled(flags.training, dataset, strategy)

    assert ask("auto", gpus=1)
    assert not ask("auto", gpus=0)
    assert not ask("never", gpus=1)
    assert ask("always", gpus=0)
    assert not ask("auto", gpus=1, memory=1000)
    with pytest.raises(ConfigError, match="quarter of the memory"):
        ask("always", memory=1000)
    strategy = SimpleNamespace(num_replicas_in_sync=2)
    with pytest.raises(ConfigError, match="with 2 replicas"):
        ask("always")


class CountingModel(keras.Model):
    """A model of a user, with a step of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.num_steps = tf.Variable(0)

    def train_step(self, data: Any) -> dict:
        self.num_steps.assign_add(1)
        return super().train_step(data)


def test_the_step_of_a_users_model_is_taken() -> None:
    """Before, a new model of the same layers was trained by Keras's step."""
    inputs = keras.Input((2,))
    network = CountingModel(inputs, keras.layers.Dense(1)(inputs))
    model = to_train_model(network)
    model.compile("sgd", "mse")

    model.fit(np.ones((12, 2)), np.ones((12, 1)), batch_size=4, verbose=0)

    assert model is network
    assert int(model.num_steps) == 3
