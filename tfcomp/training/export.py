"""Exports SavedModels for inference, in TensorFlow Serving's layout.

`<export_dir>/<run_name>/<version>/` needs TensorFlow alone. Its signatures:

    serving_default   factors [n, F] -> image [n, H, W, C]
    activations       factors [n, F] -> {stage: activation [n, ...]}
    geometry          factors [n, F] -> {stage: metric tensor [n, F, F]},
                      of the ordered factors alone

`README.md` beside them is the card of the model.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.notes import CARD_FILE, format_model_card
from tfcomp.metrics.jacobians import choose_jacobian, compute_stage_metrics
from tfcomp.models.registry import make_stage_model
from tfcomp.storage.files import add_version
from tfcomp.training.prepared_models import count_steps

# Hash of the architecture and the weights, in a version's folder.
FINGERPRINT = Path("assets.extra") / "weights.sha256"
# Python code of the card.
CALL = """\
import tensorflow as tf

model = tf.saved_model.load(".")  # the folder of this file
image = model.signatures["serving_default"](factors=factors)["image"]
stages = model.signatures["activations"](factors=factors)
geometry = model.signatures["geometry"](factors=factors)  # per stage"""


def export_scored(
    model: keras.Model,
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    folder: str | Path = "",
    steps: Sequence[str] | None = None,
) -> Path:
    """Exports a model with its card.

    Args:
        model: The model.
        config: Its run.
        dataset: The data of the run.
        metrics: The content of `metrics.json`.
        folder: The folder of versions, by default the run's export folder.
        steps: Stages whose geometry comes from differences, if known.

    Returns:
        The folder of the version.
    """
    jacobian_fn = choose_jacobian(model, dataset, steps)
    methods = describe_methods(model, config, dataset)
    card = format_model_card(config, dataset, metrics, [CALL], methods)
    if not folder:
        folder = config.export_path
    return export_model(
        model,
        folder,
        jacobian_fn=jacobian_fn,
        card=card,
    )


def export_model(
    model: keras.Model,
    folder: str | Path,
    jacobian_fn: Callable,
    card: str = "",
) -> Path:
    """Exports the next version, unless the last one is the same model.

    Args:
        model: A model with stages.
        folder: The folder of versions.
        jacobian_fn: Computes Jacobians of its stages, for their geometry.
        card: The text of `README.md`, if there is one.

    Returns:
        The folder of the version.
    """
    architecture = model.to_json()
    digest = hashlib.sha256(architecture.encode())
    for weight in model.get_weights():
        digest.update(weight.tobytes())
    fingerprint = digest.hexdigest()

    def write(partial: Path) -> None:
        write_archive(model, partial, jacobian_fn)
        file = partial / FINGERPRINT
        file.parent.mkdir(exist_ok=True)
        file.write_text(fingerprint)
        if card:
            path = partial / CARD_FILE
            path.write_text(card, "utf-8")

    def is_same(version: Path) -> bool:
        file = version / FINGERPRINT
        if not file.exists():
            return False
        return file.read_text() == fingerprint

    version, _ = add_version(Path(folder), write, is_same)
    return version


def write_archive(
    model: keras.Model,
    folder: Path,
    jacobian_fn: Callable,
) -> None:
    """Writes a SavedModel with its three signatures.

    Args:
        model: A model with stages.
        folder: The folder to write.
        jacobian_fn: Computes Jacobians of its stages, for their geometry.
    """
    endpoints = make_endpoints(model, jacobian_fn)
    width = model.inputs[0].shape[-1]
    # TensorFlow does not check the shapes of arguments, but endpoints do.
    signature = tf.TensorSpec((None, width), name="factors")

    # Functions with a signature, as Keras has them, are traced again to be
    # saved, but concrete ones are not.
    archive = tf.Module()
    functions = {}
    variables = []
    for name, endpoint in endpoints.items():
        function = tf.function(endpoint, autograph=False)
        traced = function.get_concrete_function(signature)
        setattr(archive, name, traced)
        functions[name] = traced
        variables.append(traced.variables)
    archive.weights = variables
    tf.saved_model.save(archive, str(folder), functions)


def make_endpoints(
    model: keras.Model,
    jacobian_fn: Callable,
) -> dict[str, Callable]:
    """Makes the functions of a SavedModel, by their names.

    Args:
        model: A model with stages.
        jacobian_fn: Computes Jacobians of its stages, for their geometry.
    """
    stages = make_stage_model(model)
    width = model.inputs[0].shape[-1]

    def check(factors: tf.Tensor) -> tf.Tensor:
        """Returns factors [n, F]; an error in the graph for other shapes."""
        num_columns = tf.shape(factors)[1]
        rule = tf.debugging.assert_equal(
            num_columns,
            width,
            message=f"factors must be [n, {width}]",
        )
        with tf.control_dependencies([rule]):
            checked = tf.identity(factors)
        return tf.ensure_shape(checked, (None, width))

    def predict(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        checked = check(factors)
        return {"image": model(checked)}

    def read_stages(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        checked = check(factors)
        return dict(stages(checked))

    def measure_geometry(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        checked = check(factors)
        metrics = compute_stage_metrics(stages, checked, jacobian_fn)
        geometry = {}
        for name, g in metrics.items():
            geometry[name] = tf.cast(g, tf.float32)
        return geometry

    return {
        "serving_default": predict,
        "activations": read_stages,
        "geometry": measure_geometry,
    }


def describe_methods(
    model: keras.Model,
    config: RunConfig,
    dataset: Dataset,
) -> str:
    """Describes a network and its training in words and numbers.

    What differs from the defaults stands in the flags of a card, too.

    Args:
        model: The network.
        config: Its run.
        dataset: The data of the run.

    Returns:
        Two sentences. The first is, for example, `The decoder (`cnn`) maps the
        bump code of x and y to an image of 28 x 28 x 1 (381,313 weights).`
    """
    names = " and ".join(dataset.space.names)
    shape = " x ".join(map(str, dataset.image_shape))
    num_weights = model.count_params()
    network = (
        f"The decoder (`{config.model.model}`) maps the "
        f"{config.model.encoding} code of {names} to an image of {shape} "
        f"({num_weights:,} weights)"
    )

    training = config.training
    optimizer = (
        f"AdamW (learning rate {training.learning_rate:g}, "
        f"weight decay {training.weight_decay:g}, "
        f"epsilon {training.adam_epsilon:g})"
    )
    num_examples = len(dataset.splits.train)
    epoch_steps = count_steps(training, dataset)
    num_steps = training.epochs * epoch_steps
    return (
        f"{network}. "
        f"It was trained on {num_examples:,} examples by {optimizer} "
        f"for {num_steps:,} steps "
        f"({training.epochs:,} epochs of {epoch_steps:,}) "
        f"with {training.batch_size} examples in a batch, "
        f"in {training.precision}, with seed {training.seed}."
    )
