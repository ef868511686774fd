"""`--resume` of a finished run makes again what the run has lost."""

import dataclasses
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.training.experiment import train_and_evaluate


@pytest.fixture
def copy(smoke_run: RunConfig, tmp_path: Path) -> RunConfig:
    """A copy of the finished run, to be damaged and resumed."""
    logs, models = tmp_path / "logs", tmp_path / "models"
    shutil.copytree(smoke_run.log_dir, logs)
    shutil.copytree(smoke_run.export_dir, models)
    places = {"log_dir": str(logs), "export_dir": str(models)}
    return dataclasses.replace(smoke_run, **places, resume=True)


def read(config: RunConfig) -> tuple[list[np.ndarray], str]:
    run = Path(config.run_dir)
    model = keras.models.load_model(run / "model.keras")
    return model.get_weights(), (run / "metrics.json").read_text()


def check_same(first: RunConfig, second: RunConfig) -> None:
    weights, metrics = zip(read(first), read(second), strict=True)
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)
    assert metrics[0] == metrics[1]


def test_model_and_metrics(copy: RunConfig, smoke_run: RunConfig) -> None:
    """From the last checkpoint: with the time of the first training."""
    run = Path(copy.run_dir)
    (run / "model.keras").write_bytes(b"PK")
    (run / "metrics.json").write_text("{}")
    train_and_evaluate(copy)
    check_same(copy, smoke_run)
