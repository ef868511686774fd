"""Kills with SIGKILL at random moments; every resume ends in equal bits."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

import tfcomp.models.keras_objects  # noqa: F401  (classes of the saved model)
from tfcomp.storage.model_versions import list_versions

KILLS = 20


def command(folder: Path, *flags: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tfcomp.train",
        "--flagfile=smoke.flags",
        "--epochs=60",
        "--steps_per_epoch=10",
        "--layerwise_every=25",
        "--checkpoint_seconds=0",
        f"--log_dir={folder / 'logs'}",
        f"--export_dir={folder / 'models'}",
        *flags,
    ]


def read_result(folder: Path) -> tuple[list[np.ndarray], bytes]:
    """The weights and the curves of a run with one SavedModel."""
    run = folder / "logs" / "smoke"
    model = keras.models.load_model(run / "model.keras")
    (version,) = list_versions(folder / "models" / "smoke")
    assert version.name == "1"
    return model.get_weights(), (run / "history.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_runs_resume_to_the_same_bits(tmp_path: Path) -> None:
    start = time.monotonic()
    subprocess.run(command(tmp_path / "whole"), check=True)
    duration = time.monotonic() - start
    expected, curves = read_result(tmp_path / "whole")
    chance = random.Random(0)
    for kill in range(KILLS):
        folder = tmp_path / f"killed_{kill}"
        process = subprocess.Popen(command(folder))
        moment = chance.uniform(0.1, 1.0) * duration
        time.sleep(moment)
        process.kill()
        process.wait()
        subprocess.run(command(folder, "--resume"), check=True)
        weights, curves_of_parts = read_result(folder)
        for first, second in zip(expected, weights, strict=True):
            np.testing.assert_array_equal(first, second)
        assert curves_of_parts == curves
        print(f"kill {kill} after {moment:.1f} s: equal")
        shutil.rmtree(folder)
