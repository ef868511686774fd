"""The acting decoder: settings and rules, known without TensorFlow."""

from collections.abc import Mapping, Sequence

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS
from tfcomp.models.model_rules import check_groups

POSE = ("x", "y", "angle", "size")
POSE_TERMS = (*POSE, "template", "color")  # color is for several channels
VERBS = {
    "x": "moves along x",
    "y": "moves along y",
    "angle": "turns",
    "size": "scales",
    "template": "changes the template",
    "color": "changes the color",
}
# Learning rates relative to `--learning_rate`; else 1.
RATES = {"template": 2.5, "angle": 0.25}
FIRST_SIZE = 0.45  # of an object, in sides of the image
CANVAS = 16  # logits along a side of a template
FINE = 32  # pixels along a side, up to which an image has subpixels


def parse_pose_terms(spec: str, colors: int) -> tuple[str, ...]:
    """Returns the terms of a spec, in order; ConfigError for invalid ones."""
    # One channel has no color.
    possible = POSE_TERMS if colors > 1 else POSE_TERMS[:-1]
    names = list(possible) if spec == "all" else spec.split(",")
    if len({*names} & {*possible}) < len(names):
        rule = f"must be all, or some of {', '.join(possible)}"
        raise ConfigError("channels", rule, spec)
    return tuple(term for term in possible if term in names)


def count_subpixels(shape: Sequence[int]) -> int:
    """Returns the number of samples along each side of a pixel."""
    return 2 if max(shape) <= FINE else 1


def describe_pose_terms(factors: Mapping[str, Mapping[str, float]]) -> str:
    """Describes factors, as `x moves along x; hue changes the color`."""
    verbs = {
        factor: " and ".join(VERBS.get(term, term) for term in terms)
        for factor, terms in factors.items()
    }
    return "; ".join(f"{f} {v or 'does nothing'}" for f, v in verbs.items())


def check_acting(config: RunConfig, dataset: Dataset) -> None:
    """Checks code, groups, pose terms and settings of the training."""
    model, training = config.model, config.training
    if training.num_replicas > 1:
        rule = "must be at most 1 for the model acting"
        raise ConfigError("num_replicas", rule, training.num_replicas)
    required = {"encoding": "one_hot", "precision": "float32"}
    flags = config.to_flags()
    for flag, value in required.items():
        if flags[flag] != value:
            rule = f"must be {value} for the model acting"
            raise ConfigError(flag, rule, flags[flag])
    if model.groups:
        check_groups(config, dataset)
    parse_pose_terms(model.channels, dataset.image_shape[2])


MODELS.register("acting", "tfcomp.models.acting:build_acting", check_acting)
