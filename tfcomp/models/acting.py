"""The acting decoder: values of factors transform a template.

Every value of a factor f has a pose p_f = (x, y, angle, log size), a template
T_f of logits on a small canvas, and, where images have several channels, a
color c_f. These sum over the factors of an object (`factor_transforms`):

    p = p_0 + sum_f p_f,   T = T_0 + sum_f T_f,   c = sigmoid(c_0 + sum_f c_f)

The canvas is turned, scaled and then moved (`canvas`), its sigmoid is the share
of a pixel that the object covers, and objects (`--groups`, from front to back)
are laid over the background. Poses have many poor optima: see `acting_starts`
and `acting_training`.
"""

from collections.abc import Sequence

import keras
import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import choose_rows
from tfcomp.datasets.factors import Factor, parse_groups
from tfcomp.models.acting_starts import Start, fit_moment, measure_moments
from tfcomp.models.acting_training import ActingModel
from tfcomp.models.canvas import Draw
from tfcomp.models.decoders.acting import parse_pose_terms
from tfcomp.models.encodings.base import make_encoding, stack_groups
from tfcomp.models.factor_transforms import FactorTransforms

MAX_MEASURED = 4096  # images with measured moments


def build_acting(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Returns the decoder in which values of factors act on a template."""
    model, training, space = config.model, config.training, dataset.space
    colors = dataset.image_shape[2]
    groups = parse_groups(model.groups or "+".join(space.names), space)
    terms = parse_pose_terms(model.channels, colors)
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    encoding = make_encoding(config, space)
    codes = encoding.split(encoding(factors))
    background = find_background(dataset)
    is_single, starts = len(groups) == 1, None
    if is_single:
        starts = find_starts(dataset, encoding, background, terms)
    parts = []
    for number, group in enumerate(groups):
        code = keras.layers.Concatenate(dtype="float32", name=f"units_{number}")
        acts = FactorTransforms(
            [_describe(space.factors[column]) for column in group],
            terms,
            model.candidates,
            colors,
            seed=[training.seed, number],
            starts=starts,
            dtype="float32",
            name=f"acts_{number}",
        )
        parts.append(acts(code([codes[column] for column in group])))
    shown = (background.tolist(), is_single and colors == 1)
    draw = Draw(dataset.image_shape, *shown, dtype="float32", name="image")
    acting = ActingModel(factors, draw(stack_groups(parts, "stage_0")))
    passes = -(-len(dataset.splits.train) // training.batch_size)
    steps = training.epochs * (training.steps_per_epoch or passes)
    acting.plan(steps, model.shrink, model.channel_price)
    return acting


def _describe(factor: Factor) -> list:
    kind = "periodic" if factor.periodic else "ordered"
    kind = "categorical" if factor.categorical else kind
    return [factor.name, factor.size, kind]


def find_starts(
    dataset: Dataset,
    encoding: keras.layers.Layer,
    background: np.ndarray,
    terms: Sequence[str],
) -> dict[str, Start]:
    """Returns first poses, by the center and the mass of training images."""
    table = dataset.splits.train
    table = table[choose_rows(len(table), MAX_MEASURED)]
    images = dataset.render_array(table)
    codes = [np.asarray(x) for x in encoding.split(encoding(table))]
    return {
        term: fit_moment(codes, moment)
        for term, moment in measure_moments(images, background).items()
        if term in terms
    }


def find_background(dataset: Dataset) -> np.ndarray:
    """Returns the ground of each channel, or the median of training images."""
    colors = dataset.image_shape[2]
    if dataset.ground is not None:
        return np.full(colors, dataset.ground)
    table = dataset.splits.train
    images = dataset.render_array(table[:: len(table) // 256 + 1])
    return np.median(images.reshape(-1, colors), axis=0)


def clear_candidates(model: keras.Model) -> None:
    """Sets the weights of all other candidates to zero."""
    for layer in model.layers:
        if isinstance(layer, FactorTransforms):
            layer.forget_others()


def measure_pose_terms(model: keras.Model) -> dict[str, dict[str, float]]:
    """Returns the pose terms in use and the spread of values, by factor.

    The spread is a root mean square, in the units of `canvas`, or in logits.
    """
    layers = (x for x in model.layers if isinstance(x, FactorTransforms))
    return {n: c for layer in layers for n, c in layer.measure().items()}
