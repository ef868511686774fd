"""A paragraph on a network and its training, ready for a paper's methods."""

import itertools
import math
from typing import Any

import keras

from tfcomp.config.run_config import RunConfig, TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.training.prepared_models import count_steps

# Settings of layers that name their number of units.
_SIZES = {"units": "unit", "filters": "channel"}


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
