"""Exports SavedModels for inference, in TensorFlow Serving's layout.

`<export_dir>/<run_name>/<version>/` needs TensorFlow alone. Its signatures:

    serving_default   factors [n, F] -> image [n, H, W, C]
    activations       factors [n, F] -> {stage: activation [n, ...]}
    geometry          factors [n, F] -> {stage: metric tensor [n, F, F]},
                      of the ordered factors alone

`README.md` beside them is the card of the model, with a paragraph on the
network and its training, ready for a paper's methods.
"""

import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfcomp.config.run_config import RunConfig, TrainingConfig
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
# Settings of layers that name their number of units.
_SIZES = {"units": "unit", "filters": "channel"}


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
    choose = functools.partial(choose_jacobian, model, dataset, steps)
    methods = describe_methods(model, config, dataset)
    card = format_model_card(config, dataset, metrics, [CALL], methods)
    if not folder:
        folder = config.export_path
    return export_model(
        model,
        folder,
        choose=choose,
        card=card,
    )


def export_model(
    model: keras.Model,
    folder: str | Path,
    choose: Callable[[], Callable],
    card: str = "",
) -> Path:
    """Exports the next version, unless the last one is the same model.

    Args:
        model: A model with stages.
        folder: The folder of versions.
        choose: Chooses the function that computes Jacobians of its
            stages, for their geometry; called for a new version alone.
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
        write_archive(model, partial, choose())
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
    """Describes layers, weights and training in words and numbers.

    Args:
        model: The network; layers without weights are left out.
        config: Its run.
        dataset: The data of the run.

    Returns:
        Sentences, for example `The decoder maps the bump code of x and y to an
        image of 28 x 28 x 1 by 7 layers (381,313 weights): ...`.
    """
    *first, last = dataset.space.names
    names = last
    if first:
        names = f"{', '.join(first)} and {last}"
    shape = " x ".join(map(str, dataset.image_shape))
    layers = [layer for layer in model.layers if layer.count_params()]
    network = (
        f"The decoder (`{config.model.model}`) maps the "
        f"{config.model.encoding} code of {names} to an image of {shape} by "
        f"{_count(len(layers), 'layer')} with weights "
        f"({model.count_params():,} weights)"
    )
    is_penalized = bool(model.losses)
    training = _describe_training(config.training, dataset, is_penalized)
    return f"{network}: {_list_layers(layers)}. {training}"


def _list_layers(layers: list[keras.Layer]) -> str:
    """Lists layers in order; equal neighbors share an entry."""
    texts = [_describe_layer(layer) for layer in layers]
    entries = []
    for text, group in itertools.groupby(texts):
        count = len(list(group))
        entries.append(f"{count} x {text}" if count > 1 else text)
    return "; ".join(entries)


def _describe_layer(layer: keras.Layer) -> str:
    """Describes a layer, as `Conv2D (64 channels, kernel 3 x 3, relu)`."""
    config = layer.get_config()
    facts = []
    for name, noun in _SIZES.items():
        if name in config:
            facts.append(_count(config[name], noun))
    if "rank" in config:
        facts.append(f"rank {config['rank']}")
    if "kernel_size" in config:
        facts.append(f"kernel {_join(config['kernel_size'])}")
    strides = config.get("strides", (1, 1))
    if math.prod(strides) > 1:
        facts.append(f"stride {_join(strides)}")
    activation = config.get("activation", "linear")
    if activation != "linear":
        facts.append(str(activation))

    kind = type(layer).__name__
    if not facts:
        return kind
    return f"{kind} ({', '.join(facts)})"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def _join(sizes: Any) -> str:
    return " x ".join(map(str, sizes))


def _describe_training(
    training: TrainingConfig, dataset: Dataset, is_penalized: bool
) -> str:
    """Describes loss, optimizer and steps."""
    num_examples = len(dataset.splits.train)
    steps = count_steps(training, dataset)

    optimizer = (
        f"AdamW (learning rate {training.learning_rate:g}, weight decay "
        f"{training.weight_decay:g}, epsilon {training.adam_epsilon:g})"
    )
    loss = "the mean squared error"
    if training.l1_weight:
        loss += f" plus {training.l1_weight:g} times the mean absolute error"
    if is_penalized:
        loss += " plus the penalties of its layers"

    sentence = (
        f"It was trained on {num_examples:,} examples to minimize {loss} by "
        f"{optimizer} for {training.epochs * steps:,} steps "
        f"({training.epochs:,} epochs of {steps:,}) with {training.batch_size} "
        f"examples in a batch, in {training.precision}, with seed "
        f"{training.seed}"
    )
    details = []
    if training.decay != "none":
        share = f"{training.decay_share:.0%}"
        details.append(
            f"The learning rate fell to 0 over the last {share} of the steps "
            f"({training.decay})"
        )
    if training.clip_norm:
        details.append(
            f"Gradients were clipped to a norm of {training.clip_norm:g}"
        )
    if training.plateau_patience:
        details.append(
            "The learning rate was halved after more than "
            f"{training.plateau_patience} epochs without a lower loss"
        )
    return ". ".join([sentence, *details]) + "."
