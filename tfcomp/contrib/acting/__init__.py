"""The acting decoder: values of factors transform a template.

Every value of a factor f has a pose p_f = (x, y, angle, log size), a template
T_f of logits on a small canvas, and, where images have several channels, a
color c_f. These sum over the factors of an object (`factor_transforms`):

    p = p_0 + sum_f p_f,   T = T_0 + sum_f T_f,   c = sigmoid(c_0 + sum_f c_f)

The canvas is turned, scaled and then moved (`canvas`), its sigmoid is the share
of a pixel that the object covers, and objects (`--groups`, from front to back)
are laid over the background.

Poses have many poor optima: initial ones are measured (`acting_starts`), and
`--candidates` trainings run side by side (`tfcomp.contrib.acting.acting_model`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, parse_groups
from tfcomp.contrib.acting import starts, registry
from tfcomp.models.registry import MODELS, keras, layers

_VERBS = {
    "x": "moves along x",
    "y": "moves along y",
    "angle": "turns",
    "size": "scales",
    "template": "changes the template",
    "color": "changes the color",
}


def _check_acting(config: RunConfig, dataset: Dataset) -> None:
    if config.training.num_replicas > 1:
        raise registry.refuse(config, "num_replicas", "must be at most 1")
    needed = {"encoding": "one_hot", "precision": "float32", "l1_weight": 0.0}
    for flag, value in needed.items():
        if config.to_flags()[flag] != value:
            raise registry.refuse(config, flag, f"must be {value}")
    if config.model.groups:
        registry.check_groups(config, dataset)
    parse_pose_terms(config.model.channels, dataset.image_shape[2])


def parse_pose_terms(spec: str, colors: int) -> tuple[str, ...]:
    """Returns the terms of a spec, in order; ConfigError for invalid ones."""
    # One channel has no color.
    every = starts.POSE_TERMS
    possible = every if colors > 1 else every[:-1]
    names = list(possible) if spec == "all" else spec.split(",")
    if len({*names} & {*possible}) < len(names):
        rule = f"must be all, or some of {', '.join(possible)}"
        raise ConfigError("channels", rule, spec)
    return tuple(term for term in possible if term in names)


def describe_pose_terms(factors: Mapping[str, Mapping[str, float]]) -> str:
    """Describes factors, as `x moves along x; hue changes the color`."""
    verbs = {
        factor: " and ".join(_VERBS.get(term, term) for term in terms)
        for factor, terms in factors.items()
    }
    return "; ".join(f"{f} {v or 'does nothing'}" for f, v in verbs.items())


@MODELS.register("acting", check=_check_acting)
def build_acting(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Returns the decoder in which values of factors act on a template."""
    from tfcomp.contrib.acting.acting_model import ActingModel
    from tfcomp.contrib.acting.canvas import Draw
    from tfcomp.contrib.acting.transforms import FactorTransforms

    model, training, space = config.model, config.training, dataset.space
    colors = dataset.image_shape[2]
    groups = parse_groups(model.groups or "+".join(space.names), space)
    terms = parse_pose_terms(model.channels, colors)
    factors = registry.make_input(dataset)
    encoding = registry.make_encoding(config, space)
    codes = encoding.split(encoding(factors))
    background = starts.find_background(dataset)
    is_single, starts = len(groups) == 1, None
    if is_single:
        starts = starts.find_starts(dataset, encoding, background, terms)
    parts = []
    for number, group in enumerate(groups):
        code = layers.Concatenate(dtype="float32", name=f"units_{number}")
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
    # White on gray could be gray: there, brightness is learned as a color.
    is_white = is_single and colors == 1 and dataset.ground is not None
    shown = background.tolist(), is_white
    draw = Draw(dataset.image_shape, *shown, dtype="float32", name="image")
    acting = ActingModel(factors, draw(registry.stack_groups(parts, "stage_0")))
    passes = -(-len(dataset.splits.train) // training.batch_size)
    steps = training.epochs * (training.steps_per_epoch or passes)
    acting.plan(steps, model.shrink, model.channel_price)
    return acting


def _describe(factor: Factor) -> list:
    kind = "periodic" if factor.periodic else "ordered"
    kind = "categorical" if factor.categorical else kind
    steps = [factor.cycle] if factor.cycle > factor.size else []
    return [factor.name, factor.size, kind, *steps]
