"""Runs of hard rendering and with one ordered factor."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from pytest import approx

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.forced_rendering import AxisEmbedding
from tfcomp.storage.run_folder import read_metrics
from tfcomp.train import format_report
from tfcomp.training.callbacks import PruneAxes, measure_fitted
from tfcomp.training.experiment import train_and_evaluate

TINY = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=37",
    "--digit_classes=4,1",
    "--region=box:digit:4-4,angle:160-200",
    "--width=2",
    "--depth=1",
    "--epochs=1",
)


def test_metrics_and_export(tmp_path, read_events) -> None:
    """Measures of one factor are read in `test_own_factors_run`."""
    places = (f"--log_dir={tmp_path}/logs", f"--export_dir={tmp_path}/models")
    config = parse_config([*TINY, *places])

    train_and_evaluate(config)

    metrics = read_metrics(Path(config.run_dir))
    assert metrics["ood"]["mse"] > 0
    assert metrics["id"]["position_accuracy"] is None
    code = metrics["layers"]["code"]
    assert code["factorization"] is None  # no pair of ordered factors
    assert code["probe_r2_id"] == approx(1, abs=1e-3)
    assert code["log_volume_id"] == approx(-4.0483, abs=1e-3)

    tags = set(read_events(config).Tags()["tensors"])
    assert {"answer/samples_ood", "answer/curve", "answer/ood_error"} <= tags
    assert "answer/map" not in tags

    model = tf.saved_model.load(f"{config.export_path}/1")
    points = tf.constant([[4.0, 30.0], [1.0, 90.0]])
    images = model.signatures["serving_default"](factors=points)
    assert images["image"].shape == (2, 28, 28, 1)
    metric = model.signatures["geometry"](factors=points)
    assert metric["stage_0"].shape == (2, 1, 1)


def test_outputs_of_hard_rendering(tmp_path, read_events) -> None:
    """Axes that are found, given and left out, of a soft code."""
    config = parse_config(
        [
            "--flagfile=hard_rendering.flags",
            "--grid_size=6",
            "--region=corner:4",
            "--rank=2",
            "--encoding=bump",
            "--width=3",
            "--depth=1",
            "--epochs=1",
            "--axes=x:find,y:none",
            "--id_target=0",
            "--eval_every=0",
            "--noexport",
            f"--log_dir={tmp_path}",
        ]
    )

    metrics = train_and_evaluate(config)

    x = metrics["embeddings"]["x"]
    y = metrics["embeddings"]["y"]
    assert set(x) == {"effective_rank", "ratio", "axis"}
    assert x["ratio"] > 1
    assert x["axis"] is None
    assert "entropy" in y
    assert "not decided" in format_report(config, make_dataset(config), metrics)
    tags = set(read_events(config).Tags()["tensors"])
    assert {"profiles/x", "embedding/x", "embedding/y"} <= tags
    assert "embedding_ratio/x" in tags


def test_axes_wait_until_something_is_fitted() -> None:
    """In terms of the error of a blank image on training examples."""
    dataset = make_dataset(parse_config(["--flagfile=hard_rendering.flags"]))
    points = dataset.splits.grid[dataset.splits.is_id]
    blank = float((dataset.render_array(points) ** 2).mean())
    assert measure_fitted(dataset) == approx(blank / 2, rel=1e-5)

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
