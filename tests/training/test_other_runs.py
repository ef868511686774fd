"""Runs of hard rendering and with one ordered factor, to the report."""

import csv
import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp import analyze
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.forced_rendering import AxisEmbedding
from tfcomp.train import format_report
from tfcomp.training.callbacks import PruneAxes, measure_blank
from tfcomp.training.experiment import train_and_evaluate

TINY = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=37",
    "--width=2",
    "--depth=1",
    "--epochs=1",
)
RUNS = {
    "one": ("--region=gap:angle:160-200",),
    "several": ("--digit_classes=4,1", "--region=box:digit:4-4,angle:160-200"),
}
Train = Callable[[str], RunConfig]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains a run by its name, once for all tests."""
    folder = tmp_path_factory.mktemp("digits")
    places = (f"--log_dir={folder}/logs", f"--export_dir={folder}/models")

    @functools.cache
    def train(name: str) -> RunConfig:
        flags = (*TINY, *places, f"--run_name={name}", *RUNS[name])
        config = parse_config(flags)
        train_and_evaluate(config)
        return config

    return train


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


# Measures of one factor are also read in `test_own_factors_run`.
ONE = pytest.param("one", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [ONE, "several"])
def test_metrics(name: str, train: Train, read_events: Callable) -> None:
    config = train(name)
    text = (Path(config.run_dir) / "metrics.json").read_text()
    metrics = json.loads(text)
    assert metrics["ood"]["mse"] > 0
    assert metrics["id"]["position_accuracy"] is None
    code = metrics["layers"]["code"]
    assert code["factorization"] is None  # no pair of ordered factors
    assert code["probe_r2_id"] == pytest.approx(1, abs=1e-3)
    assert code["log_volume_id"] == pytest.approx(-4.0483, abs=1e-3)
    tags = set(read_events(config).Tags()["tensors"])
    assert {"answer/samples_ood", "answer/curve", "answer/errors"} <= tags
    assert "answer/map" not in tags


@pytest.mark.parametrize("name", [ONE, "several"])
def test_export(name: str, train: Train) -> None:
    model = tf.saved_model.load(f"{train(name).export_path}/1")
    factors = 1 if name == "one" else 2
    points = tf.constant([[4.0, 30.0], [1.0, 90.0]])[:, 2 - factors :]
    drawn = model.signatures["serving_default"](factors=points)
    assert drawn["image"].shape == (2, 28, 28, 1)
    metric = model.signatures["geometry"](factors=points)
    assert metric["stage_0"].shape == (2, 1, 1)


@pytest.mark.slow
def test_interpolation_over_gap_widths(train: Train, tmp_path: Path) -> None:
    paths = ",".join(train(name).run_dir for name in RUNS)
    arguments = ["analyze", f"--run={paths}", f"--output={tmp_path}"]
    assert analyze.main([*arguments, "--sections=gaps,layers,manifolds"]) == 0
    rows = read_csv(tmp_path / "interpolation.csv")
    found = {row["curve"]: float(row["gap_width"]) for row in rows}
    # 160 to 200 in steps of 10: known from 150 and from 210 on.
    assert found == {"angle": 60, "digit 4": 60}
    assert all(0 <= float(r["interpolation_r2"]) <= 1 for r in rows)


def test_outputs_of_hard_rendering(
    tmp_path: Path, read_events: Callable
) -> None:
    """Axes that are found, given and left out, of a soft code."""
    config = parse_config(
        [
            "--flagfile=hard_rendering.flags",
            *("--grid_size=6", "--region=corner:4", "--rank=2"),
            *("--encoding=bump", "--width=3", "--depth=1", "--epochs=1"),
            *("--axes=x:find,y:none", "--id_target=0", "--eval_every=0"),
            *(f"--log_dir={tmp_path}", "--noexport"),
        ]
    )
    metrics = train_and_evaluate(config)
    x, y = metrics["embeddings"]["x"], metrics["embeddings"]["y"]
    assert set(x) == {"effective_rank", "ratio", "axis"}
    assert x["ratio"] > 1
    assert x["axis"] is None
    assert "entropy" in y
    report = format_report(config, metrics)
    assert "axes         x: not decided" in report
    assert "saved model" not in report
    # What a finished run did not export is not there the second time either.
    again = dataclasses.replace(config, export=True, export_dir=str(tmp_path))
    command = f"tfcomp export --run={config.run_dir}"
    found = f"saved model  none; write one by {command}\n"
    assert found in format_report(again, metrics)
    tags = set(read_events(config).Tags()["tensors"])
    assert {"profiles/x", "embedding/x", "spectrum/y"} <= tags
    assert "embedding_ratio/x" in tags


def test_axes_wait_until_something_is_fitted() -> None:
    """In terms of the error of a blank image on training examples."""
    config = parse_config(["--flagfile=hard_rendering.flags"])
    dataset = make_dataset(config)
    images = dataset.render_array(dataset.splits.grid[dataset.splits.is_id])
    blank = float((images**2).mean())
    assert measure_blank(dataset) == pytest.approx(blank, rel=1e-5)
    layer = AxisEmbedding(3, 4)
    model = keras.Sequential([keras.Input((1,)), layer])
    layer.trainable_weights[0].assign(np.full((3, 4), 1e-3))
    callback = PruneAxes(0.2, dataset)
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(0, {"loss": 0.6 * blank})
    assert layer.find_axis() is None
    callback.on_epoch_end(1, {"loss": 0.4 * blank})
    assert layer.find_axis() == "columns"
