"""A run of hard rendering, with one ordered factor and classes."""

import contextlib
import io
from pathlib import Path

import keras
import numpy as np
import pytest
from pytest import approx

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.forced_rendering import AxisEmbedding
from tfcomp.storage.run_folder import read_metrics
from tfcomp.train import format_report
from tfcomp.training import monitor
from tfcomp.training.callbacks import PruneAxes, measure_fitted
from tfcomp.training.experiment import train_and_evaluate

FLAGS = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=13",
    "--digit_classes=4,1",
    "--region=box:digit:4-4,angle:150-200",
    "--model=hard_rendering",
    "--axes=angle:find",
    "--encoding=bump",
    "--rank=2",
    "--width=3",
    "--depth=1",
    "--epochs=1",
    "--steps_per_epoch=1",
    "--export=false",
    "--eval_every=0",
    "--id_target=0",
)

PIXELS = np.zeros((2, 2, 4), np.uint8)  # in place of every figure


def fail(*_: object, **__: object):
    raise RuntimeError("Failed to process string with tex")


@pytest.fixture(scope="module")
def config(tmp_path_factory, untraced) -> RunConfig:
    """A finished run whose axes are looked for, and left out of classes.

    Images of its samples cannot be drawn.
    """
    folder = tmp_path_factory.mktemp("run")
    config = parse_config([*FLAGS, f"--log_dir={folder}/logs"])
    notes = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor.pictures, "picture_samples", fail)
        patch.setattr(monitor, "figure_to_array", lambda *_: PIXELS)
        with contextlib.redirect_stderr(notes):
            train_and_evaluate(config)
    assert "no pictures" in notes.getvalue()
    return config


def test_metrics(config):
    """Measures of one factor are read in `test_own_factors_run`."""
    metrics = read_metrics(Path(config.run_dir))

    assert metrics["ood"]["mse"] > 0
    assert metrics["id"]["position_accuracy"] is None
    code = metrics["layers"]["code"]
    assert code["factorization"] is None  # no pair of ordered factors
    assert code["probe_r2_id"] == approx(1, abs=1e-3)
    angle = metrics["embeddings"]["angle"]
    assert set(angle) == {"effective_rank", "ratio", "axis"}
    assert angle["ratio"] > 1
    assert angle["axis"] is None
    assert "entropy" in metrics["embeddings"]["digit"]
    report = format_report(config, make_dataset(config), metrics)
    assert "not decided" in report


def test_pictures_that_fail_leave_the_others(config, read_events):
    tags = set(read_events(config).Tags()["tensors"])

    expected = {
        "answer/curve",
        "answer/ood_error",
        "profiles/angle",
        "embedding/angle",
        "embedding/digit",
        "embedding_ratio/angle",
    }
    assert expected <= tags
    assert tags.isdisjoint({"answer/map", "answer/samples_ood"})
    assert not Path(config.run_dir, "samples.png").exists()


def test_axes_wait_until_something_is_fitted():
    """In terms of the error of a blank image on training examples."""
    dataset = make_dataset(parse_config(["--flagfile=hard_rendering.flags"]))
    splits = dataset.splits
    images = dataset.render_array(splits.grid[splits.is_id])
    blank = np.square(images).mean()
    assert measure_fitted(dataset) == approx(blank / 2, rel=1e-5)

    layer = AxisEmbedding(3, 4)
    inputs = keras.Input((1,))
    model = keras.Model(inputs, layer(inputs))
    rows, _ = layer.trainable_weights
    rows.assign(np.full((3, 4), 1e-3))
    callback = PruneAxes(0.2, dataset)
    callback.set_model(model)
    callback.on_train_begin()

    callback.on_epoch_end(0, {"loss": 0.6 * blank})
    assert layer.find_axis() is None
    callback.on_epoch_end(1, {"loss": 0.4 * blank})
    assert layer.find_axis() == "columns"
