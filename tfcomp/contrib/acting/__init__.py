"""The acting decoder: values of factors transform a template.

Every value of a factor f has a pose p_f = (x, y, angle, log size), a template
T_f of logits on a small canvas, and, where images have several channels, a
color c_f. These sum over the factors of an object (`FactorTransforms`):

    p = p_0 + sum_f p_f,   T = T_0 + sum_f T_f,   c = sigmoid(c_0 + sum_f c_f)

The canvas is turned, scaled and then moved (`Draw`), its sigmoid is the share
of a pixel that the object covers, and objects (`--groups`, from front to back)
are laid over the background.

Poses have many poor optima: initial ones are measured (`first_poses`), and
`--candidates` trainings run side by side (`acting_model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.contrib.acting import first_poses
from tfcomp.contrib.acting.first_poses import POSE_TERMS
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, parse_groups
from tfcomp.models import registry
from tfcomp.models.registry import MODELS, keras, layers

NEEDED = {
    "encoding": "one_hot",
    "precision": "float32",
    "l1_weight": 0.0,
}


def check_acting(config: RunConfig, dataset: Dataset) -> None:
    """Refuses settings that the acting decoder cannot take.

    Args:
        config: The run.
        dataset: Its dataset.

    Raises:
        ConfigError: If a flag has a value that the decoder cannot take.
    """
    training = config.training
    if training.num_replicas > 1:
        raise registry.refuse(config, "num_replicas", "must be at most 1")

    flags = config.to_flags()
    for flag, value in NEEDED.items():
        if flags[flag] != value:
            raise registry.refuse(config, flag, f"must be {value}")

    model = config.model
    if model.groups:
        registry.check_groups(config, dataset)
    colors = dataset.image_shape[2]
    parse_pose_terms(model.channels, colors)


def parse_pose_terms(spec: str, colors: int) -> tuple[str, ...]:
    """Returns the terms that `--channels` names, in the order of `POSE_TERMS`.

    Args:
        spec: `all`, or terms separated by commas.
        colors: Channels of an image; a single one has no term `color`.

    Raises:
        ConfigError: A term is unknown.
    """
    possible = list(POSE_TERMS)
    if colors == 1:
        possible.remove("color")
    if spec == "all":
        return tuple(possible)

    names = set(spec.split(","))
    if not names.issubset(possible):
        rule = f"must be all, or some of {', '.join(possible)}"
        raise ConfigError("channels", rule, spec)
    terms = [term for term in possible if term in names]
    return tuple(terms)


def list_background(dataset: Dataset) -> list[float]:
    """Returns the background, which the network has as a constant."""
    background = first_poses.find_background(dataset)
    return background.tolist()


@MODELS.register(
    "acting",
    check=check_acting,
    constants=list_background,
)
def build_acting(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Builds the decoder in which values of factors act on a template.

    Args:
        config: The run.
        dataset: Its dataset, whose training images tell the first poses.

    Returns:
        An `ActingModel` with the stages `stage_0` and `image`.
    """
    from tfcomp.contrib.acting.acting_model import ActingModel
    from tfcomp.training.prepared_models import count_steps

    model = config.model
    space = dataset.space
    colors = dataset.image_shape[2]
    spec = model.groups
    if not spec:
        spec = "+".join(space.names)
    groups = parse_groups(spec, space)
    terms = parse_pose_terms(model.channels, colors)

    factors = registry.make_input(dataset)
    encoding = registry.make_encoding(config, space)
    background = first_poses.find_background(dataset)

    # Moments of an image tell the pose of its object if it has a single one.
    is_single = len(groups) == 1
    starts = None
    if is_single:
        starts = first_poses.find_starts(dataset, encoding, background, terms)

    code = encoding(factors)
    codes = encoding.split(code)
    poses = []
    for number, group in enumerate(groups):
        pose = _pose_object(
            config,
            number,
            factors=[space.factors[column] for column in group],
            codes=[codes[column] for column in group],
            channels=terms,
            colors=colors,
            starts=starts,
        )
        poses.append(pose)

    draw = _make_draw(dataset, background, is_single)
    objects = registry.stack_groups(poses, "stage_0")
    image = draw(objects)

    acting = ActingModel(factors, image)
    acting.plan(
        steps=config.training.epochs * count_steps(config.training, dataset),
        shrink=model.shrink,
        price=model.channel_price,
    )
    return acting


def _pose_object(
    config: RunConfig,
    number: int,
    factors: Sequence[Factor],
    codes: Sequence[keras.KerasTensor],
    **settings: Any,
) -> keras.KerasTensor:
    """Sums the pose terms of an object.

    Args:
        config: The run.
        number: The number of the object.
        factors: The factors of the object.
        codes: The codes of these factors, [n, units] each.
        **settings: Other arguments of `FactorTransforms`.
    """
    from tfcomp.contrib.acting.acting_layers import FactorTransforms

    descriptions = [_describe(factor) for factor in factors]
    transforms = FactorTransforms(
        descriptions,
        candidates=config.model.candidates,
        seed=[config.training.seed, number],
        dtype="float32",
        name=f"acts_{number}",
        **settings,
    )
    join = layers.Concatenate(dtype="float32", name=f"units_{number}")
    units = join(codes)
    return transforms(units)


def _make_draw(
    dataset: Dataset,
    background: Array,
    is_single: bool,
) -> keras.layers.Layer:
    """Makes the layer that lays objects over the background.

    Args:
        dataset: Has the shape of images.
        background: The background, [channels].
        is_single: True if there is a single object.
    """
    from tfcomp.contrib.acting.acting_layers import Draw

    # White on gray could be gray: there, brightness is learned as a color.
    colors = dataset.image_shape[2]
    is_gray = colors == 1 and dataset.ground is not None
    return Draw(
        dataset.image_shape,
        background=background.tolist(),
        is_white=is_single and is_gray,
        dtype="float32",
        name="image",
    )


def _describe(factor: Factor) -> list:
    """Returns a factor as `FactorTransforms` and saved models have it."""
    kind = "ordered"
    if factor.categorical:
        kind = "categorical"
    elif factor.periodic:
        kind = "periodic"

    description = [factor.name, factor.size, kind]
    if factor.cycle > factor.size:
        description.append(factor.cycle)
    return description
