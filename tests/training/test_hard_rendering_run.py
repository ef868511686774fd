"""A run of hard rendering: metrics, pictures, models that load back."""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.train import format_report
from tfcomp.training.experiment import train_and_evaluate


def test_outputs_of_hard_rendering(
    tmp_path: Path, read_events: Callable
) -> None:
    """Axes that are found, given and left out, of a soft code."""
    config = parse_config(
        [
            "--flagfile=hard_rendering.flags",
            *("--grid_size=12", "--region=corner:8", "--rank=4"),
            *("--encoding=bump", "--width=3", "--epochs=2"),
            *("--axes=x:find,y:none", "--id_target=0", "--eval_every=1"),
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
