"""Registries of decoders and encodings, their rules, shared parts, stages.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    cost(config)             multiplications of the widest layer, per image

Both are called before TensorFlow starts. Modules of `decoders`, which register
themselves, import it in their builders, and `keras` and `layers` from here.

Stages are the representations that analysis looks at. In the models of tfcomp
they are the layers named `code`, `stage_0`, `stage_1`, ... and `image`; of any
other functional Keras model they are given.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry, import_plugins
from tfcomp.config.process import count_device_memory, count_memory
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
    import tensorflow as tf
    from keras import layers
else:
    keras = LazyModule("keras")
    layers = LazyModule("keras.layers")
    tf = LazyModule("tensorflow")

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

FLOAT = 4  # bytes
# A weight, its gradient and the optimizer's two moments.
COPIES = 4

# A stage function maps factors [n, F] to stages by name, [n, ...] each.
StageDict = dict[str, "tf.Tensor"]
StageFn = Callable[["tf.Tensor"], StageDict]
JacobianFn = Callable[[StageFn, "tf.Tensor"], StageDict]

# One row of a 28 x 28 grid: on a CPU larger batches of wide networks are no
# faster, and take more memory.
BATCH_SIZE = 28
# Activations of all points up to this size are computed by one call.
CALL_BYTES = 2**23
# On a GPU, where a call takes milliseconds, a share of its memory.
GPU_SHARE = 128
_STAGE_NAME = re.compile(r"code|stage_\d+|image")

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
    """Checks whether dataset, decoder and encoding of a run are tfcomp's.

    A decoder that somebody adds to a clone is not: no setting names it.
    """
    named: set[str] = set()
    for field in all_fields():
        named.update(field.metadata["used_by"])
    if config.model.model not in named:
        return False

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

    Parts of users, and decoders that are added to a clone, may read any flag:
    beside one, nothing is described.

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

    points = len(dataset.splits.grid)
    images = 2 + len(dataset.other_truths)  # of the model and the renderers
    image_size = math.prod(dataset.image_shape)
    pixels = images * points * image_size
    flag = dataset.size_flag
    if dataset.splits.existing:
        flag = "eval_points"

    memory = count_memory()
    needs = [
        ("width", "the weights", weights),
        (flag, f"images of {points:,} combinations", pixels),
    ]
    for name, subject, numbers in needs:
        size = FLOAT * numbers
        if size <= memory:
            continue
        rule = (
            f"must be smaller: {subject} take {size / 1e9:,.1f} GB, this "
            f"machine has {memory / 1e9:,.1f} GB"
        )
        value = config.to_flags()[name]
        raise ConfigError(name, rule, value)


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


def list_stages(model: keras.Model) -> list[str]:
    """Returns the names of the model's stages in the order of data flow.

    Layers with an attribute `is_stage` are stages, whatever their names.
    """
    names = []
    for layer in model.layers:
        is_stage = getattr(layer, "is_stage", False)
        name = layer.name
        if is_stage or _STAGE_NAME.fullmatch(name):
            names.append(name)
    return names


def make_stage_model(
    model: keras.Model,
    stages: Sequence[str] | None = None,
) -> keras.Model:
    """Returns a model with shared weights that returns all stages by name.

    Args:
        model: A functional or sequential Keras model.
        stages: Layer names; default `list_stages`.

    Raises:
        ValueError: If the model has no such layer, or none at all.
    """
    if stages is None:
        stages = list_stages(model)
    if not stages:
        raise ValueError(
            "the model has no layer named code, stage_<i> or image: "
            "give the layers to analyze as stages"
        )

    inputs = model.inputs
    if len(inputs) == 1:
        inputs = inputs[0]
    outputs = {}
    for name in stages:
        layer = model.get_layer(name)
        outputs[name] = layer.output
    return keras.Model(inputs, outputs, name=f"{model.name}_stages")


def make_model(
    config: RunConfig,
    dataset: Dataset,
    precision: str,
) -> keras.Model:
    """Builds the model of a run by its seed.

    Args:
        config: The run.
        dataset: Its data.
        precision: A Keras dtype policy of the hidden layers.
    """
    keras.utils.set_random_seed(config.training.seed)
    decoder = MODELS.get(config.model.model)
    build = decoder.load()
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        return build(config, dataset)
    finally:
        keras.config.set_dtype_policy(policy)


def choose_batch_size(num_units: int, num_points: int) -> int:
    """Chooses how many points a call takes.

    Args:
        num_units: Units of all stages together.
        num_points: All points that will be evaluated.
    """
    gpus = tf.config.list_physical_devices("GPU")
    on_gpu = bool(gpus)
    max_bytes = CALL_BYTES
    if on_gpu:
        max_bytes = count_device_memory() // GPU_SHARE
    point_bytes = 4 * num_units
    max_points = max_bytes // point_bytes

    if on_gpu or max_points >= num_points:
        return max(BATCH_SIZE, max_points)
    return BATCH_SIZE


def evaluate_in_batches(
    fn: Callable[[tf.Tensor], StageDict],
    factors: np.ndarray,
    batch_size: int = BATCH_SIZE,
) -> dict[str, np.ndarray]:
    """Evaluates a function of factors over a whole grid, batch by batch.

    The last batch is padded, so there is one trace, which a `tf.function`
    keeps.

    Args:
        fn: Maps factors [b, F] to {name: tensor [b, ...]}, row by row. It is
            traced, unless it is a `tf.function`.
        factors: The points, [n, F], cast to float32.
        batch_size: Points of a call, at most.

    Returns:
        Arrays [n, ...] by name.
    """
    num_points = len(factors)
    num_batches = -(-num_points // batch_size)
    size = -(-num_points // num_batches)
    padding = num_batches * size - num_points
    points = np.asarray(factors, np.float32)
    margins = [(0, padding), (0, 0)]
    padded = np.pad(points, margins, mode="edge")

    traced_type = tf.types.experimental.PolymorphicFunction
    if not isinstance(fn, traced_type):
        fn = tf.function(fn, autograph=False)

    # Filled batch by batch: joined at the end, they would take twice as much.
    results: dict[str, np.ndarray] = {}
    num_rows = len(padded)
    for start in range(0, num_rows, size):
        end = start + size
        rows = slice(start, end)
        inputs = tf.constant(padded[rows])
        batch = fn(inputs)
        for name, tensor in batch.items():
            values = np.asarray(tensor)  # `numpy` copies
            if name not in results:
                shape = (num_rows, *values.shape[1:])
                results[name] = np.empty(shape, values.dtype)
            results[name][rows] = values

    for name, values in results.items():
        results[name] = values[:num_points]
    return results
