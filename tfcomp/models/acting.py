"""Forced rendering for factors without an axis in the image: they act.

Every value i of a factor f has a pose p_fi = (x, y, angle, log size), a
template T_fi of logits on a small canvas, and, where images have several
channels, a color c_fi. They add up over the factors of an object
(`tfcomp.models.acts`):

    p = p_0 + sum_f p_f,   T = T_0 + sum_f T_f,   c = sigmoid(c_0 + sum_f c_f)

The canvas is turned, scaled and then moved (`tfcomp.models.canvas`), its
sigmoid is the share of a pixel that the object covers, and objects (`--groups`,
from front to back) are laid over the background.

Poses have many poor optima, and templates can explain any small training set.
So poses start where moments of training images say
(`tfcomp.models.acting_starts`), several candidates are trained, and the
shortest description is kept (`tfcomp.models.acting_training`). Held-out
combinations have no say.
"""

from collections.abc import Sequence

import keras
import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import choose_rows
from tfcomp.datasets.factors import Factor, parse_groups
from tfcomp.models.acting_rules import parse_channels
from tfcomp.models.acting_starts import Start, fit_moment, measure_moments
from tfcomp.models.acting_training import ActingModel
from tfcomp.models.acts import Acts
from tfcomp.models.canvas import Draw
from tfcomp.models.encodings import make_encoding, stack_groups

MAX_MEASURED = 4096  # images whose moments are measured


def build_acting(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The decoder of this module."""
    model, space = config.model, dataset.space
    rows, columns, colors = dataset.image_shape
    spec = model.groups or "+".join(space.names)
    groups = parse_groups(spec, space)
    channels = parse_channels(model.channels, colors)
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    encoding = make_encoding(config, space)
    codes = encoding.split(encoding(factors))
    background = find_background(dataset)
    starts = find_starts(dataset, encoding, background, channels)
    parts = []
    for number, group in enumerate(groups):
        code = keras.layers.Concatenate(dtype="float32", name=f"units_{number}")
        acts = Acts(
            [
                [factor.name, factor.size, _find_kind(factor)]
                for factor in (space.factors[column] for column in group)
            ],
            channels,
            model.candidates,
            colors,
            seed=[config.training.seed, number],
            starts=starts if len(groups) == 1 else None,
            dtype="float32",
            name=f"acts_{number}",
        )
        parts.append(acts(code([codes[column] for column in group])))
    draw = Draw(
        dataset.image_shape,
        [float(value) for value in background],
        is_white=len(groups) == 1 and colors == 1,
        dtype="float32",
        name="image",
    )
    acting = ActingModel(factors, draw(stack_groups(parts, "stage_0")))
    training = config.training
    passes = -(-len(dataset.splits.train) // training.batch_size)
    steps = training.epochs * (training.steps_per_epoch or passes)
    acting.plan(steps, model.shrink, model.channel_price)
    return acting


def _find_kind(factor: Factor) -> str:
    if factor.categorical:
        return "categorical"
    return "periodic" if factor.periodic else "ordered"


def find_starts(
    dataset: Dataset,
    encoding: keras.layers.Layer,
    background: np.ndarray,
    channels: Sequence[str],
) -> dict[str, Start]:
    """Where poses start, from the middle and mass of training images."""
    table = dataset.splits.train
    table = table[choose_rows(len(table), MAX_MEASURED)]
    images = dataset.render_array(table)
    codes = [np.asarray(x) for x in encoding.split(encoding(table))]
    return {
        channel: fit_moment(codes, moment)
        for channel, moment in measure_moments(images, background).items()
        if channel in channels
    }


def find_background(dataset: Dataset) -> np.ndarray:
    """The value of each channel where nothing is drawn, [C].

    Without a known background it is the median of training pixels.
    """
    colors = dataset.image_shape[2]
    if dataset.has_background:
        return np.full(colors, dataset.background)
    table = dataset.splits.train
    images = dataset.render_array(table[:: len(table) // 256 + 1])
    return np.median(images.reshape(-1, colors), axis=0)


def forget_candidates(model: keras.Model) -> None:
    """Empties what training alone has used; the model draws the same."""
    for layer in model.layers:
        if isinstance(layer, Acts):
            layer.forget_others()


def measure_channels(model: keras.Model) -> dict[str, dict[str, float]]:
    """By factor, the channels in use and the spread of its values there.

    A spread is a root mean square over values: of x and y in halves of the
    shorter side, of angles in radians, of sizes in logarithms, of templates
    and colors in logits. Empty for other models.
    """
    layers = (x for x in model.layers if isinstance(x, Acts))
    return {n: c for layer in layers for n, c in layer.measure().items()}
