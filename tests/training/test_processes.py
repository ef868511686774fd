"""Trainings in processes of their own: random kills, and two replicas."""

import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from tests.conftest import set_tracing
from tfcomp import train
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.loading import load_model
from tfcomp.training.experiment import train_and_evaluate
from tfcomp.training.fit import make_batches
from tfcomp.training.prepared_models import make_strategy, make_training_model

SMALL = ("--flagfile=smoke.flags", "--grid_size=8", "--region=square:3-4")
FLAGS = (
    *SMALL,
    "--model=mlp",
    "--depth=1",
    "--width=4",
    "--epochs=6",
    "--steps_per_epoch=10",
    "--eval_every=3",
    "--layerwise_every=0",
    "--checkpoint_seconds=0",
    "--nopictures",
    "--noexport",
    "--keep_outputs=3",
)
REPLICATED = (
    *SMALL,
    "--model=low_rank",
    "--encoding=one_hot",
    "--rank=3",
    "--depth=1",
    # Penalties must be counted once, and not for each replica.
    "--entropy_weight=0.1",
    "--variance_weight=0.05",
    # Steps are as long as the clipped gradient, not as its ratio to others.
    "--clip_norm=0.01",
    "--adam_epsilon=1",
    "--learning_rate=9",
    "--steps_per_epoch=1",
)
Start = Callable[..., BaseProcess]


@pytest.fixture(scope="module")
def start() -> Start:
    """Starts a function in a process of its own.

    All processes are forked off one that has imported TensorFlow.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.started"])

    def start_process(function: Callable, argument: object) -> BaseProcess:
        process = context.Process(target=function, args=(argument,))
        process.start()
        return process

    return start_process


def list_flags(folder: Path) -> list[str]:
    return [*FLAGS, f"--log_dir={folder}/logs"]


def list_checkpoints(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("logs/smoke/checkpoints/*.index")}


def kill_later(process: BaseProcess, folder: Path, seconds: float) -> bool:
    """Kills a process so long after its first checkpoint, unless it ends."""
    before = list_checkpoints(folder)
    while process.is_alive() and list_checkpoints(folder) <= before:
        time.sleep(0.01)
    process.join(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -9)
    return process.exitcode != 0


def read_result(folder: Path) -> tuple[list[np.ndarray], dict[str, bytes]]:
    """The weights, and the curves and images, of a run."""
    run = folder / "logs" / "smoke"
    model = load_model(run / "model.keras")
    files = [run / "history.csv", *sorted(run.glob("outputs/epoch_*"))]
    kept = {file.name: file.read_bytes() for file in files}
    assert list(kept)[1:] == ["epoch_2.npz", "epoch_4.npz"]
    return model.get_weights(), kept


def train_replicas(strategy: tf.distribute.Strategy) -> list[np.ndarray]:
    """The losses and the weights of a training."""
    config = parse_config(REPLICATED)
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, strategy)
    fit = model.fit(
        make_batches(dataset, 16, 0),
        epochs=4,
        steps_per_epoch=1,
        shuffle=False,
        verbose=0,
    )
    return [np.array(fit.history["loss"]), *model.get_weights()]


def write_two_replicas(file: Path):
    """They are halves of a CPU, which TensorFlow has not used before."""
    np.savez(file, *train_replicas(make_strategy(2)))


def test_two_replicas_train_as_one(start, tmp_path):
    file = tmp_path / "two.npz"
    process = start(write_two_replicas, file)
    with set_tracing(False):
        one = train_replicas(tf.distribute.get_strategy())
    process.join()

    assert process.exitcode == 0
    assert len(one) > 10
    with np.load(file) as two:
        for array, expected in zip(two.values(), one, strict=True):
            assert_allclose(array, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_runs_resume_to_the_same_bits(kills, start, tmp_path):
    train_and_evaluate(parse_config(list_flags(tmp_path)))
    expected, curves = read_result(tmp_path)
    chance = random.Random(0)
    done = 0
    number = 0
    while done < kills:
        folder = tmp_path / str(number)
        number += 1
        command = ["train", *list_flags(folder), "--resume"]
        is_killed = True
        while is_killed and done < kills:
            process = start(train.main, command)
            is_killed = kill_later(process, folder, chance.uniform(0, 0.2))
            done += is_killed
        train.main(command)
        weights, resumed_curves = read_result(folder)
        for first, second in zip(expected, weights, strict=True):
            np.testing.assert_array_equal(first, second)
        assert resumed_curves == curves
        assert not list(folder.rglob("*_temp"))
