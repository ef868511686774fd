"""Kills with SIGKILL at random moments; every resume ends in equal bits."""

import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from tfcomp import train
from tfcomp.config.run_flags import parse_config
from tfcomp.models.loading import load_model
from tfcomp.training.experiment import train_and_evaluate

FLAGS = (
    "--flagfile=smoke.flags",
    "--model=mlp",
    "--width=8",
    "--grid_size=8",
    "--region=square:3-4",
    "--epochs=6",
    "--steps_per_epoch=10",
    "--eval_every=3",
    "--layerwise_every=0",
    "--checkpoint_seconds=0",
    "--nopictures",
    "--noexport",
    "--keep_outputs=3",
)
Start = Callable[[Path], BaseProcess]


@pytest.fixture(scope="module")
def start() -> Start:
    """Starts the run in a folder, or resumes it there.

    All processes are forked off one that has imported TensorFlow.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tfcomp.training.experiment"])

    def start_process(folder: Path) -> BaseProcess:
        command = ["train", *list_flags(folder), "--resume"]
        process = context.Process(target=train.main, args=(command,))
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
        is_killed = True
        while is_killed:  # the last process ends by itself
            wait = chance.uniform(0, 0.2) if done < kills else 1e6
            is_killed = kill_later(start(folder), folder, wait)
            done += is_killed
        weights, resumed_curves = read_result(folder)
        for first, second in zip(expected, weights, strict=True):
            np.testing.assert_array_equal(first, second)
        assert resumed_curves == curves
        assert not list(folder.rglob("*_temp"))
