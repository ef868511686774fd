"""Compiled training: an epoch as one XLA program, against ordinary steps.

XLA needs seconds for the smallest convolution on a CPU, so networks are tiny.
"""

import re
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

from tests.training.conftest import copy_state
from tests.training.test_resume import check_state
from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Entry
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.models import MODELS, forced_rendering
from tfcomp.models.forced_rendering import LowRankEmbedding
from tfcomp.training import fit as fitting
from tfcomp.training.fit import make_training_table
from tfcomp.training.prepared_models import (
    make_strategy,
    make_training_model,
    to_train_model,
)

SMALL = (
    "--flagfile=smoke.flags",
    "--grid_size=8",
    "--region=square:3-4",
    "--epochs=4",
    "--steps_per_epoch=10",
    "--batch_size=8",
    "--width=2",
    "--rank=3",
)
VARIED = (*SMALL, "--noise=0.05", "--decay=linear", "--clip_norm=1")
DENSE = (*VARIED, "--model=mlp", "--depth=1")


class Losses(keras.callbacks.Callback):
    """The loss of every epoch, as callbacks of users see it."""

    def on_train_begin(self, logs: dict | None = None):
        self.losses: list[float] = []

    def on_epoch_end(self, epoch: int, logs: dict | None = None):
        self.losses.append(logs["loss"])


@pytest.mark.parametrize(
    "flags",
    [
        DENSE,
        pytest.param(VARIED, marks=pytest.mark.slow),
        pytest.param(
            (*VARIED, "--model=low_rank", "--encoding=one_hot"),
            marks=pytest.mark.slow,
        ),
        pytest.param((*SMALL, "--model=slots"), marks=pytest.mark.slow),
    ],
)
def test_compiled_training_agrees(flags, fit, tmp_path):
    """After 40 steps, with penalties; losses reach callbacks as before."""
    ordinary_losses = Losses()
    losses = Losses()

    ordinary = fit(
        (*flags, "--compiled=never"),
        tmp_path / "never",
        ordinary_losses,
    )
    program = fit((*flags, "--compiled=always"), tmp_path / "always", losses)

    weights = ordinary.get_weights()
    for one, other in zip(program.get_weights(), weights, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-5)
    assert program.optimizer.iterations.numpy() == 40
    assert_allclose(losses.losses, ordinary_losses.losses, rtol=1e-4)
    assert len(losses.losses) == 4


class ReadsEvery(Losses):
    """Reads weights after every second epoch, and may be killed there."""

    def __init__(self, killed_after: int = 0):
        super().__init__()
        self._killed_after = killed_after

    def reads_weights(self, done: int) -> bool:
        return not done % 2

    def on_epoch_end(self, epoch: int, logs: dict | None = None):
        super().on_epoch_end(epoch, logs)
        if epoch + 1 == self._killed_after:
            raise KeyboardInterrupt


def build_random(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The smallest network with a layer that draws random numbers."""
    factors = keras.Input((2,))
    pixels = keras.layers.Dense(64)(factors)
    noisy = keras.layers.GaussianNoise(0.1)(pixels, training=True)
    image = keras.layers.Reshape((8, 8, 1))(noisy)
    return keras.Model(factors, image)


@pytest.mark.parametrize(
    "flags",
    [
        DENSE,
        pytest.param((*SMALL, "--model=random"), marks=pytest.mark.slow),
    ],
)
def test_epochs_of_one_call_give_the_same_bits(
    flags, fit, tmp_path, monkeypatch
):
    """Two epochs a call or one, also when killed between and resumed."""
    monkeypatch.setitem(MODELS._entries, "random", Entry(build_random))
    flags = (*flags, "--compiled=always")
    whole = Losses()
    killed = ReadsEvery(4)  # in the second epoch of a call
    resumed = ReadsEvery()

    expected = copy_state(fit(flags, tmp_path / "whole", whole))
    with pytest.raises(KeyboardInterrupt):
        fit(flags, tmp_path / "cut", killed)
    assert killed.losses == whole.losses[:4]
    check_state(fit(flags, tmp_path / "cut", resumed), expected)
    assert resumed.losses == whole.losses[2:]  # no checkpoint within a call


def make_program(name: str) -> str:
    """XLA's input for a registered decoder; nothing is compiled."""
    flags = (*SMALL, "--width=8", "--encoding=one_hot", f"--model={name}")
    config = parse_config(flags)
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    table = make_training_table(dataset)
    rows = tf.zeros([1, 2, 4], tf.int64)
    lower = model.train_epochs.experimental_get_compiler_ir(rows, *table)
    return lower(stage="hlo")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MODELS.names()) - {"acting"}))
def test_every_decoder_becomes_a_program(name):
    text = make_program(name)
    assert "while" in text
    assert "HloModule" in text


@pytest.mark.slow
def test_products_are_exact_without_tensor_float_32():
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


def test_products_look_up_what_take_does():
    """Values to the bit, also absent ones; gradients up to rounding."""
    layer = LowRankEmbedding(5, (4, 3), 2)
    index = tf.constant([0.0, 3.0, np.nan, 3.0, 7.0])
    layer(index)

    def compute() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            image = layer(index)
            loss = tf.reduce_sum(image**2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        return [image, *map(tf.convert_to_tensor, gradients)]

    plain = compute()
    with forced_rendering.use_products():
        products = compute()
    assert_array_equal(plain[0], products[0])
    for one, other in zip(plain, products, strict=True):
        assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("choice", "gpus", "memory", "replicas", "expected"),
    [
        ("auto", 1, 2**40, 1, True),
        ("auto", 0, 2**40, 1, False),
        ("never", 1, 2**40, 1, False),
        ("always", 0, 2**40, 1, True),
        ("auto", 1, 1000, 1, False),
        ("always", 1, 1000, 1, "memory"),
        ("always", 1, 2**40, 2, "2 replicas"),
    ],
)
def test_when_steps_are_compiled(
    choice, gpus, memory, replicas, expected, monkeypatch
):
    """On one GPU, if the table fits; on request; never with replicas."""
    devices = ["GPU"] * gpus
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: devices)
    monkeypatch.setattr(fitting, "count_device_memory", lambda: memory)
    config = parse_config([*SMALL, f"--compiled={choice}"])
    dataset = make_dataset(config)
    strategy = SimpleNamespace(num_replicas_in_sync=replicas)
    if isinstance(expected, bool):
        is_compiled = fitting.is_compiled(config.training, dataset, strategy)
        assert is_compiled == expected
    else:
        with pytest.raises(ConfigError, match=expected):
            fitting.is_compiled(config.training, dataset, strategy)


class CountingModel(keras.Model):
    """A model of a user, with a step of its own."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.num_steps = tf.Variable(0)

    def train_step(self, data: Any) -> dict:
        self.num_steps.assign_add(1)
        return super().train_step(data)


def test_the_step_of_a_users_model_is_taken():
    """Before, a new model of the same layers was trained by Keras's step."""
    inputs = keras.Input((2,))
    network = CountingModel(inputs, keras.layers.Dense(1)(inputs))
    model = to_train_model(network)
    model.compile("sgd", "mse")

    model.fit(
        np.ones((12, 2)),
        np.ones((12, 1)),
        batch_size=4,
        verbose=0,
    )

    assert model is network
    assert int(model.num_steps) == 3
