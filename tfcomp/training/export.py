"""Exports SavedModels for inference, in TensorFlow Serving's layout.

`<export_dir>/<run_name>/<version>/` needs TensorFlow alone. Its signatures:

    serving_default   factors [n, F] -> image [n, H, W, C]
    activations       factors [n, F] -> {stage: activation [n, ...]}
    geometry          factors [n, F] -> {stage: metric tensor [n, F, F]}

`card.md` beside them describes the model.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfcomp.analysis.jacobians import compute_stage_metrics
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.evaluation.loading import load_run
from tfcomp.models.stages import make_stage_model
from tfcomp.storage.output_folders import add_version
from tfcomp.training.card import CARD_FILE, format_card

# Hash of the architecture and the weights, in a version's folder.
FINGERPRINT = Path("assets.extra") / "weights.sha256"


def export_model(
    model: keras.Model,
    folder: str | Path,
    jacobian_fn: Callable,
    card: str = "",
) -> Path:
    """Exports the next version, unless the last one is the same model.

    Args:
        model: A float32 model with named stages.
        folder: The parent of the versions.
        jacobian_fn: Computes the derivatives of the stages.
        card: The text of `card.md`.

    Returns:
        The folder of the version that has the model.
    """
    digest = hashlib.sha256(model.to_json().encode())
    for weight in model.get_weights():
        digest.update(weight.tobytes())
    fingerprint = digest.hexdigest()

    def write(partial: Path) -> None:
        write_archive(model, partial, jacobian_fn)
        (partial / FINGERPRINT).parent.mkdir(exist_ok=True)
        (partial / FINGERPRINT).write_text(fingerprint)
        if card:
            (partial / CARD_FILE).write_text(card, "utf-8")

    def is_same(version: Path) -> bool:
        file = version / FINGERPRINT
        return file.exists() and file.read_text() == fingerprint

    version, _ = add_version(Path(folder), write, is_same)
    return version


def export_run(run: Path, folder: Path) -> Path:
    """Exports a finished run; errors are those of `load_run`."""
    loaded = load_run(run)
    return export_scored(
        loaded.model, loaded.config, loaded.dataset, loaded.metrics, folder
    )


def export_scored(
    model: keras.Model,
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    folder: str | Path = "",
    steps: Sequence[str] | None = None,
) -> Path:
    """Exports a model with its card, by default to the run's export folder.

    The stages without derivatives are `steps`; by default, they are looked for.
    """
    jacobian_fn = choose_jacobian(model, dataset.space, steps)
    card = format_card(config, dataset, metrics)
    return export_model(model, folder or config.export_path, jacobian_fn, card)


def write_archive(
    model: keras.Model, folder: Path, jacobian_fn: Callable
) -> None:
    """Writes a SavedModel with its three signatures."""
    stages = make_stage_model(model)

    width = model.inputs[0].shape[-1]

    def check(factors: tf.Tensor) -> tf.Tensor:
        """Returns the factors; fails if columns are missing or too many."""
        message = f"factors must be [n, {width}]"
        shape = tf.shape(factors)
        rule = tf.debugging.assert_equal(shape[1], width, message)
        with tf.control_dependencies([rule]):
            return tf.ensure_shape(tf.identity(factors), (None, width))

    def measure_geometry(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        metrics = compute_stage_metrics(stages, check(factors), jacobian_fn)
        return {name: tf.cast(m, tf.float32) for name, m in metrics.items()}

    # TensorFlow does not check the shapes of arguments, but `check` does.
    signature = tf.TensorSpec((None, width), name="factors")
    # Functions with a signature, as those of Keras, are traced again to be
    # saved, but concrete ones are not.
    archive = tf.Module()
    functions = {
        name: tf.function(endpoint, autograph=False).get_concrete_function(
            signature
        )
        for name, endpoint in {
            "serving_default": lambda factors: {"image": model(check(factors))},
            "activations": lambda factors: dict(stages(check(factors))),
            "geometry": measure_geometry,
        }.items()
    }
    for name, function in functions.items():
        setattr(archive, name, function)
    archive.weights = [function.variables for function in functions.values()]
    tf.saved_model.save(archive, str(folder), functions)
