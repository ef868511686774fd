"""What a model draws for superposed codes: figure 1d in its published form.

The paper superposes *inputs*. At an unseen (x, y) it averages the codes g
of the known points that share x, and of those that share y, and compares
the output with f(g(x), mean g(y')) and f(mean g(x'), g(y)). The mean *outputs*
of these points (`tfcomp.analysis.superposition`) are the same for a linear f.
"""

import math

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.datasets.splits import Splits
from tfcomp.models.encodings.scalar_codes import FactorIndex
from tfcomp.models.stages import make_stage_model

MAX_SIZE = 2**27  # numbers


def draw_superposed_inputs(
    model: keras.Model, splits: Splits
) -> np.ndarray | None:
    """Images for the mean codes of the ID points that share a factor.

    For every OOD point and factor one, [n_ood, F, H, W, C], NaN where no ID
    point shares the value. None for a model whose image depends on more than
    the stage `code`, for a code that is an index, and for too large images.
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
        means = [_mean(codes[is_id & (column == v)]) for v in values]
        drawn = evaluate_in_batches(decode, np.stack(means))["image"]
        images.append(drawn[place[splits.is_ood]])
    return np.stack(images, axis=1)


def find_decoder(model: keras.Model) -> tf.types.experimental.Callable | None:
    """The function from codes [m, code] to `{"image": [m, H, W, C]}`."""
    layers = {layer.name: layer for layer in model.layers}
    code = layers.get("code")
    if code is None or isinstance(code, FactorIndex):
        return None
    try:
        decoder = keras.Model(code.output, model.output)
    except ValueError:  # the image depends on something else, too
        return None
    return tf.function(lambda codes: {"image": decoder(codes)}, autograph=False)


def _mean(codes: np.ndarray) -> np.ndarray:
    return codes.mean(axis=0) if len(codes) else codes.sum(axis=0) * np.nan
