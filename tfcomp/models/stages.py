"""Models of runs, and stages: the representations that analysis looks at.

In the models of tfcomp they are the layers named `code`, `stage_0`,
`stage_1`, ... and `image`; of any other functional Keras model they are given.
"""

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
from tfcomp.models.forced_rendering import ValueEmbedding

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
_STAGE_NAME = re.compile(r"code|stage_\d+|image")


class Stage(keras.layers.Layer):
    """Makes a tensor a stage of a model.

    Input shape:
        A list of the tensor, `(batch, ...)`, and of the stages before it,
        which puts them first among the layers of the model.

    Output shape:
        `(batch, ...)`: the first tensor, unchanged.
    """

    def call(self, inputs: list[KerasTensor]) -> KerasTensor:
        """Passes the first tensor on.

        Args:
            inputs: The tensor, and the stages before it.
        """
        return inputs[0]


def list_stages(model: keras.Model) -> list[str]:
    """Returns the names of the model's stages in the order of data flow."""
    names = []
    for layer in model.layers:
        is_stage = isinstance(layer, Stage)
        name = layer.name
        if is_stage or _STAGE_NAME.fullmatch(name):
            names.append(name)
    return names


def list_embeddings(model: keras.Model) -> dict[str, ValueEmbedding]:
    """Returns the layers in which values own images, by their factor."""
    embeddings = {}
    for layer in model.layers:
        if isinstance(layer, ValueEmbedding):
            factor = layer.name.removeprefix("embedding_")
            embeddings[factor] = layer
    return embeddings


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
        fn = tf.function(fn)

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
