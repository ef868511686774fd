"""Registries of decoders and encodings, their rules, and shared parts.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    cost(config)             multiplications of the widest layer, per image

Both are called before TensorFlow starts. Modules of `decoders`, which register
themselves, import it in their builders, and `keras` and `layers` from here.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry, import_plugins
from tfcomp.config.process import count_memory
from tfcomp.config.run_config import RunConfig, all_fields
from tfcomp.datasets import DATASETS, Dataset, make_dataset
from tfcomp.datasets.factors import FactorSpace, parse_groups


class LazyModule:
    """A module that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self._name)
        return getattr(module, name)


if TYPE_CHECKING:
    import keras
    from keras import layers
else:
    keras = LazyModule("keras")
    layers = LazyModule("keras.layers")

MODELS = Registry("model")
ENCODINGS = Registry("encoding")
# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (benchmarks/README.md).
_MIN_MULTIPLICATIONS = 200e6
# Threads of an operation, and threads that run operations side by side.
_THREAD_VARIABLES = (
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)

# Datasets that make their images; a plugin's may read a file.
READ_NO_FILE = "gaussian_bumps stripes rotated_digits sprites composed".split()
FLOAT = 4  # bytes
# A weight, its gradient and the optimizer's two moments.
COPIES = 4

AXES = ("rows", "columns")  # in the order of an image's dimensions
HEADS = 4  # of attention, and parts of sinusoids

_ENCODING_CLASSES = {
    "bump": "BumpEncoding",
    "one_hot": "OneHotEncoding",
    "positional": "PositionalEncoding",
    "circle": "CircleEncoding",
    "ramp": "RampEncoding",
}


def _make_code(
    name: str,
    config: RunConfig,
    space: FactorSpace,
) -> keras.Layer:
    from tfcomp.models import encodings

    encoding_class = getattr(encodings, name)
    return encoding_class.of_run(config, space)


for _name, _class in _ENCODING_CLASSES.items():
    _make = functools.partial(_make_code, _class)
    ENCODINGS.register(_name, _make)


def make_checked_dataset(config: RunConfig, here: bool = True) -> Dataset:
    """Makes the dataset of a run whose settings fit, without TensorFlow.

    Args:
        config: The run.
        here: It is trained on this machine; others may have more memory.

    Raises:
        ConfigError: Settings contradict each other, or exceed this machine.
        RunError: A plugin cannot be imported.
    """
    import_plugins(config.plugins)
    data = config.data
    if data.data and data.dataset in READ_NO_FILE:
        rule = "must go with --dataset=table, which reads it"
        raise ConfigError("data", rule, data.data)
    check_parts(config)
    check_model = MODELS.get(config.model.model).check
    dataset = make_dataset(config)
    if check_model:
        check_model(config, dataset)
    target = config.training.id_target
    if config.keep_outputs and target:
        rule = "must be 0 beside --id_target, whose restarts would replace them"
        raise ConfigError("keep_outputs", rule, config.keep_outputs)
    if here:
        check_memory(config, dataset)
    return dataset


def check_parts(config: RunConfig) -> None:
    """Raises a ConfigError for an unknown dataset, decoder or encoding."""
    DATASETS.get(config.data.dataset)
    MODELS.get(config.model.model)
    ENCODINGS.get(config.model.encoding)


def is_shipped(config: RunConfig) -> bool:
    """Checks whether dataset, decoder and encoding of a run are tfcomp's."""
    entries = [
        DATASETS.get(config.data.dataset),
        MODELS.get(config.model.model),
        ENCODINGS.get(config.model.encoding),
    ]
    for entry in entries:
        function = getattr(entry.target, "func", entry.target)
        if not function.__module__.startswith("tfcomp."):
            return False
    return True


def describe_unused(config: RunConfig, names: Collection[str]) -> str:
    """Describes flags that change nothing, since other parts read them.

    Parts of users may read any flag: beside one, nothing is described.

    Args:
        config: The run.
        names: The flags that a user typed.

    Returns:
        A note; empty if all are used.
    """
    if not is_shipped(config):
        return ""
    parts = [
        config.model.model,
        config.model.encoding,
        config.data.dataset,
    ]
    values = config.to_flags()
    unused = []
    for field in all_fields():
        users = field.metadata["used_by"]
        readers = set(parts).intersection(users)
        is_used = readers or not users
        if field.name in names and not is_used:
            unused.append(f"--{field.name}={values[field.name]}")
    if not unused:
        return ""
    return f"without effect on {', '.join(parts)}: {', '.join(unused)}"


def check_memory(config: RunConfig, dataset: Dataset) -> None:
    """Refuses hidden layers and images that do not fit into this machine.

    Args:
        config: The run.
        dataset: Its data.

    Raises:
        ConfigError: If they do not.
    """
    model = config.model
    weights = COPIES * model.depth * model.width**2
    _check_size(
        config,
        flag="width",
        subject="the weights",
        numbers=weights,
    )

    points = len(dataset.splits.grid)
    images = 2 + len(dataset.other_truths)  # of the model and the renderers
    image_size = math.prod(dataset.image_shape)
    pixels = images * points * image_size
    flag = dataset.size_flag
    if dataset.splits.existing:
        flag = "eval_points"
    _check_size(
        config,
        flag=flag,
        subject=f"images of {points:,} combinations",
        numbers=pixels,
    )


def _check_size(
    config: RunConfig,
    flag: str,
    subject: str,
    numbers: int,
) -> None:
    size = FLOAT * numbers
    memory = count_memory()
    if size <= memory:
        return
    rule = (
        f"must be smaller: {subject} take {size / 1e9:,.1f} GB, this "
        f"machine has {memory / 1e9:,.1f} GB"
    )
    value = config.to_flags()[flag]
    raise ConfigError(flag, rule, value)


def limit_threads(config: RunConfig) -> None:
    """Limits the threads of TensorFlow before it starts; a variable wins."""
    threads = choose_threads(config)
    if not threads:
        return
    for variable in _THREAD_VARIABLES:
        os.environ.setdefault(variable, str(threads))


def choose_threads(config: RunConfig) -> int:
    """Returns 1 for a small network, else 0; it may not change in a resume."""
    name = config.model.model
    if name not in MODELS.names():
        return 0
    cost = MODELS.get(name).cost
    if cost is None:
        return 0
    multiplications = config.training.batch_size * cost(config)
    if multiplications < _MIN_MULTIPLICATIONS:
        return 1
    return 0


def refuse(config: RunConfig, flag: str, rule: str) -> ConfigError:
    """Makes the error for a flag that the decoder of a run cannot take.

    Args:
        config: The run.
        flag: The flag's name.
        rule: What its value must be, as `must be at least 2`.
    """
    rule = f"{rule} for the model {config.model.model}"
    value = config.to_flags()[flag]
    return ConfigError(flag, rule, value)


def count_convolution(config: RunConfig) -> int:
    """Returns the cost of a convolution of `--width` channels."""
    weights = 9 * config.model.width**2
    return weights * config.data.grid_size**2


def check_groups(config: RunConfig, dataset: Dataset) -> None:
    """Checks that `--groups` name each factor once.

    Args:
        config: The run.
        dataset: Has the factors.

    Raises:
        ConfigError: If they do not.
    """
    groups = config.model.groups
    try:
        parse_groups(groups, dataset.space)
    except ValueError as error:
        raise ConfigError("groups", str(error), groups) from error


def make_encoding(config: RunConfig, space: FactorSpace) -> keras.Layer:
    """Makes the layer `code` of a run, from factors [n, F] to units.

    Args:
        config: The run.
        space: The factors.
    """
    entry = ENCODINGS.get(config.model.encoding)
    make = entry.load()
    return make(config, space)


def make_input(dataset: Dataset) -> keras.KerasTensor:
    """Makes the input `factors` [n, F] of a decoder."""
    num_factors = len(dataset.space)
    return keras.Input(
        (num_factors,),
        dtype="float32",
        name="factors",
    )


def make_code(
    config: RunConfig,
    dataset: Dataset,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Makes the input of a decoder and its code.

    Args:
        config: The run.
        dataset: Has the factors.

    Returns:
        The input `factors` [n, F], and the code [n, units].
    """
    factors = make_input(dataset)
    encoding = make_encoding(config, dataset.space)
    code = encoding(factors)
    return factors, code


def make_grouped_code(
    config: RunConfig,
    dataset: Dataset,
) -> tuple[keras.KerasTensor, list[keras.KerasTensor]]:
    """Makes the input of a decoder and a code for each of `--groups`.

    Args:
        config: The run.
        dataset: Has the factors.

    Returns:
        The input `factors` [n, F], and codes [n, units] of groups.

    Raises:
        ConfigError: If the encoding has no code of each factor.
    """
    factors = make_input(dataset)
    encoding = make_encoding(config, dataset.space)
    if not hasattr(encoding, "split"):
        rule = f"must have a code of each factor for {config.model.model}"
        raise ConfigError("encoding", rule, config.model.encoding)

    code = encoding(factors)
    factor_codes = encoding.split(code)
    groups = parse_groups(config.model.groups, dataset.space)
    group_codes = []
    for group in groups:
        members = [factor_codes[column] for column in group]
        join = layers.Concatenate()
        code = join(members)
        group_codes.append(code)
    return factors, group_codes


def stack_groups(
    parts: list[keras.KerasTensor],
    name: str,
) -> keras.KerasTensor:
    """Stacks vectors [n, k] of K groups in a layer [n, K, k].

    Args:
        parts: The vectors.
        name: The name of the layer.
    """
    count = len(parts)
    size = parts[0].shape[-1]
    stack = layers.Reshape((count, size), name=name)
    join = layers.Concatenate()
    joined = join(parts)
    return stack(joined)
