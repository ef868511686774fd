"""Configurations: flat and nested forms, rules of every setting."""

import dataclasses

import pytest

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import (
    LOCATION_FLAGS,
    RunConfig,
)
from tfcomp.config.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class Ruled(Settings):
    """One setting for every rule."""

    size: int = setting(4, "Size.", minimum=2, maximum=8)
    count: int = setting(4, "Count.")
    scale: float = setting(1.0, "Scale.", above=0.0)
    kind: str = setting("a", "Kind.", choices=("a", "b"))
    again: bool = setting(False, "Again.")


def test_agreed_flags_and_defaults() -> None:
    flat = RunConfig().to_flags()
    agreed = (
        "run_name log_dir export_dir dataset region grid_size sigma polarity "
        "coordinates num_train num_bumps encoding model depth width rank "
        "entropy_weight variance_weight epochs batch_size learning_rate "
        "weight_decay seed precision num_replicas layerwise_every resume"
    )
    assert set(agreed.split()) <= set(flat)
    assert flat["log_dir"] == "tensorboard_logs"
    assert flat["export_dir"] == "saved_models"
    assert flat["entropy_weight"] == 0.1
    assert flat["variance_weight"] == 0.01


def test_identity_leaves_out_the_location() -> None:
    config = RunConfig()
    moved = RunConfig(run_name="b", log_dir="c", export_dir="d", resume=True)
    assert moved.identity() == config.identity()
    left_out = set(config.to_flags()) - set(config.identity())
    assert left_out == set(LOCATION_FLAGS)
    other = RunConfig(data=DataConfig(grid_size=32))
    assert other.identity() != config.identity()


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("size", 1, "must be at least 2"),
        ("size", 9, "must be at most 8"),
        ("size", 4.0, "must be an integer"),
        ("size", True, "must be an integer"),
        ("count", 10**7 + 1, "must be at most 10000000"),
        ("scale", 1e300, "must be at most 1e+30"),
        ("scale", 10**400, "must be at most 1e+30"),
        ("scale", 0.0, "must be greater than 0.0"),
        ("scale", None, "must be a number"),
        ("scale", float("nan"), "must be a finite number"),
        ("kind", "c", "must be one of: a, b"),
        ("kind", 3, "must be a string"),
        ("again", 1, "must be true or false"),
    ],
)
def test_rules(name: str, value: object, rule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ruled(**{name: value})
    error = caught.value
    assert (error.name, error.rule, error.value) == (name, rule, value)
    assert str(error).startswith(f"--{name} {rule}, got {value!r}"[:200])
    assert len(str(error)) < 300


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "a\\b", "a\0b", "a\nb", " a"]
)
def test_run_name_is_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError, match="--run_name must be") as caught:
        RunConfig(run_name=name)
    assert "\n" not in str(caught.value)
