"""A run of hard rendering: metrics, pictures, models that load back."""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.axis_embedding import AxisEmbedding
from tfcomp.train import format_report
from tfcomp.training.experiment import train_and_evaluate
from tfcomp.training.plateau import PruneAxes, measure_blank


def test_outputs_of_hard_rendering(
    tmp_path: Path, read_events: Callable
) -> None:
    """Axes that are found, given and left out, of a soft code."""
    config = parse_config(
        [
            "--flagfile=hard_rendering.flags",
            *("--grid_size=8", "--region=corner:6", "--rank=2"),
            *("--encoding=bump", "--width=3", "--depth=1", "--epochs=1"),
            *("--axes=x:find,y:none", "--id_target=0", "--eval_every=0"),
            *(f"--log_dir={tmp_path / 'a'}", f"--export_dir={tmp_path / 'b'}"),
        ]
    )
    metrics = train_and_evaluate(config)
    x, y = metrics["embeddings"]["x"], metrics["embeddings"]["y"]
    assert set(x) == {"effective_rank", "ratio", "axis"}
    assert x["ratio"] > 1
    assert x["axis"] is None
    assert "entropy" in y
    assert "axes         x: not decided" in format_report(config, metrics)
    tags = set(read_events(config).Tags()["tensors"])
    assert {"profiles/x", "embedding/x", "spectrum/y"} <= tags
    assert "embedding_ratio/x" in tags
    factors = np.array([[3, 4], [8.5, 2]], np.float32)
    model = keras.models.load_model(Path(config.run_dir) / "model.keras")
    served = tf.saved_model.load(f"{config.export_path}/1").signatures
    image = served["serving_default"](factors=tf.constant(factors))["image"]
    np.testing.assert_allclose(image, model(factors), atol=1e-6)


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
