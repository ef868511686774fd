"""Draws images for superposed codes (figure 1d)."""

import math

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.datasets.splits import Splits
from tfcomp.models.encodings import FactorIndex
from tfcomp.models.stages import make_stage_model

MAX_SIZE = 2**27  # numbers of images for superposed codes


def draw_superposed_inputs(
    model: keras.Model, splits: Splits
) -> np.ndarray | None:
    """Returns images for mean codes of ID points that share a factor (fig. 1d).

    At an OOD point (x, y), for codes g, they are f(g(x), mean g(y')) and
    f(mean g(x'), g(y)): [n_ood, F, H, W, C], NaN where no ID point shares the
    value. None for an index, a model with other inputs, or too large images.
    """
    decode = find_decoder(model)
    size = splits.is_ood.sum() * splits.grid.shape[1]
    if decode is None or size * math.prod(model.output_shape[1:]) > MAX_SIZE:
        return None
    grid, is_id = splits.grid, splits.is_id
    encode = tf.function(make_stage_model(model, ["code"]), autograph=False)
    codes = evaluate_in_batches(encode, grid)["code"]  # [n, code]
    images = []
    for column in grid.T:
        values, place = np.unique(column, return_inverse=True)
        shared = [codes[is_id & (column == v)] for v in values]
        means = [
            c.mean(axis=0) if len(c) else c.sum(axis=0) * np.nan for c in shared
        ]
        drawn = evaluate_in_batches(decode, np.stack(means))["image"]
        images.append(drawn[place[splits.is_ood]])
    return np.stack(images, axis=1)


def find_decoder(model: keras.Model) -> tf.types.experimental.Callable | None:
    """Returns the function from codes [m, code] to `{"image": [m, ...]}`."""
    layers = {layer.name: layer for layer in model.layers}
    code = layers.get("code")
    if code is None or isinstance(code, FactorIndex):
        return None
    try:
        decoder = keras.Model(code.output, model.output)
    except ValueError:  # the image depends on something else, too
        return None
    # Numbers of codes differ, and without a signature each would be traced.
    spec = tf.TensorSpec([None, *code.output.shape[1:]], code.output.dtype)
    return tf.function(
        lambda codes: {"image": decoder(codes)},
        autograph=False,
        input_signature=[spec],
    )
