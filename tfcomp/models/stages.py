"""Models of runs, and stages: the representations that analysis looks at.

In the models of tfcomp they are the layers named `code`, `stage_0`,
`stage_1`, ... and `image`; of any other functional Keras model they are given.
"""

import math
import re
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import KerasTensor

from tfcomp.config.process import count_device_memory
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import MODELS

# A stage function maps factors [n, F] to stages by name, [n, ...] each.
StageDict = dict[str, tf.Tensor]
StageFn = Callable[[tf.Tensor], StageDict]
JacobianFn = Callable[[StageFn, tf.Tensor], StageDict]

# One row of a 28 x 28 grid: on a CPU larger batches of wide networks are no
# faster, and take more memory.
BATCH_SIZE = 28
# Activations of all points up to this size are computed by one call.
CALL_BYTES = 2**23
# On a GPU, where a call takes milliseconds, a share of its memory.
GPU_SHARE = 128


class Stage(keras.layers.Layer):
    """Makes the first of its inputs a stage, after the stages that follow."""

    def call(self, inputs: list[KerasTensor]) -> KerasTensor:
        return inputs[0]


def list_stages(model: keras.Model) -> list[str]:
    """Returns the names of the model's stages in the order of data flow."""
    return [
        layer.name
        for layer in model.layers
        if isinstance(layer, Stage)
        or re.fullmatch(r"code|stage_\d+|image", layer.name)
    ]


def make_stage_model(
    model: keras.Model, stages: Sequence[str] | None = None
) -> keras.Model:
    """Returns a model with shared weights that returns all stages by name.

    Args:
        model: A functional or sequential Keras model.
        stages: Layer names; default `list_stages`.

    Raises:
        ValueError: If the model has no such layer, or none at all.
    """
    names = list(stages) if stages is not None else list_stages(model)
    if not names:
        raise ValueError(
            "the model has no layer named code, stage_<i> or image: "
            "give the layers to analyze as stages"
        )
    inputs = model.inputs[0] if len(model.inputs) == 1 else model.inputs
    outputs = {name: model.get_layer(name).output for name in names}
    return keras.Model(inputs, outputs, name=f"{model.name}_stages")


def make_model(
    config: RunConfig, dataset: Dataset, precision: str
) -> keras.Model:
    """Builds the model of a run by its seed, hidden layers in `precision`."""
    keras.utils.set_random_seed(config.training.seed)
    model = build_model(config, dataset, precision)
    if config.model.start == "published":
        apply_published_start(model)
    return model


def build_model(
    config: RunConfig, dataset: Dataset, precision: str
) -> keras.Model:
    """Builds the model of a run; the random state decides its weights."""
    build = MODELS.get(config.model.model).load()
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        return build(config, dataset)
    finally:
        keras.config.set_dtype_policy(policy)


def apply_published_start(model: keras.Model) -> None:
    """Draws weights as PyTorch: uniform up to 1 / sqrt(fan-in)."""
    for layer in model.layers:
        if (kernel := getattr(layer, "kernel", None)) is None:
            continue
        bound = math.prod(kernel.shape[:-1]) ** -0.5
        for variable in (kernel, getattr(layer, "bias", None)):
            if variable is not None:
                draw = keras.initializers.RandomUniform(-bound, bound)
                variable.assign(draw(variable.shape, variable.dtype))


def choose_batch_size(num_units: int, num_points: int) -> int:
    """Returns how many points a call takes, by the units of all stages."""
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    size = count_device_memory() // GPU_SHARE if on_gpu else CALL_BYTES
    most = size // (4 * num_units)
    return max(BATCH_SIZE, most if on_gpu or most >= num_points else 0)


def evaluate_in_batches(
    fn: Callable[[tf.Tensor], StageDict],
    factors: np.ndarray,
    batch_size: int = BATCH_SIZE,
    traced: bool = True,
) -> dict[str, np.ndarray]:
    """Evaluates a function of factors [n, F] over a whole grid, batch by batch.

    It maps [b, F] to {name: tensor [b, ...]}, row by row, in float32. The last
    batch is padded, so there is one trace, which a `tf.function` keeps.
    """
    num_batches = -(-len(factors) // batch_size)
    size = -(-len(factors) // num_batches)
    padding = [(0, num_batches * size - len(factors)), (0, 0)]
    padded = np.pad(np.asarray(factors, np.float32), padding, mode="edge")
    kind = tf.types.experimental.PolymorphicFunction
    fn = tf.function(fn) if traced and not isinstance(fn, kind) else fn
    # Filled batch by batch: joined at the end, they would take twice as much.
    results: dict[str, np.ndarray] = {}
    for start in range(0, len(padded), size):
        rows = tf.constant(padded[start : start + size])
        for name, value in fn(rows).items():
            batch = np.asarray(value)  # `numpy` copies
            if name not in results:
                shape = (len(padded), *batch.shape[1:])
                results[name] = np.empty(shape, batch.dtype)
            results[name][start : start + size] = batch
    return {name: values[: len(factors)] for name, values in results.items()}
