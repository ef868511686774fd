"""Configurations: flat and nested forms, rules of every setting."""

from __future__ import annotations

import dataclasses
import os

import pytest

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.model_config import ModelConfig
from tfcomp.config.run_config import LOCATION_FLAGS
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_config import all_fields
from tfcomp.config.run_config import make_config
from tfcomp.config.settings import Settings
from tfcomp.config.settings import setting
from tfcomp.config.training_config import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Ruled(Settings):
    """One setting for every rule."""

    size: int = setting(4, "Size.", minimum=2, below=9)
    scale: float = setting(1.0, "Scale.", above=0.0)
    kind: str = setting("a", "Kind.", choices=("a", "b"))
    again: bool = setting(False, "Again.")


def test_flat_form_is_inverted_by_make_config() -> None:
    config = RunConfig(
        run_name="other",
        data=DataConfig(region="corner:14", sigma=1.5),
        model=ModelConfig(depth=2),
        training=TrainingConfig(seed=7, precision="mixed_bfloat16"),
    )
    flat = config.to_flags()
    assert flat["region"] == "corner:14"
    assert flat["depth"] == 2
    assert flat["seed"] == 7
    assert make_config(flat) == config
    assert make_config({}) == RunConfig()


def test_every_setting_is_in_the_flat_form_once() -> None:
    names = [item.name for item in all_fields()]
    assert len(names) == len(set(names))
    assert list(RunConfig().to_flags()) == names


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


def test_every_setting_has_a_help_sentence() -> None:
    for item in all_fields():
        assert item.metadata["help"].endswith("."), item.name


def test_identity_leaves_out_the_location() -> None:
    config = RunConfig()
    moved = dataclasses.replace(
        config, run_name="b", log_dir="c", export_dir="d", resume=True
    )
    assert moved.identity() == config.identity()
    assert set(config.to_flags()) - set(config.identity()) == set(
        LOCATION_FLAGS
    )
    data = dataclasses.replace(config.data, grid_size=32)
    other = dataclasses.replace(config, data=data)
    assert other.identity() != config.identity()


def test_paths() -> None:
    config = RunConfig(run_name="a", log_dir="logs", export_dir="/models")
    assert config.run_dir == os.path.join("logs", "a")
    assert config.export_path == "/models/a"


def test_config_is_frozen_and_hashable() -> None:
    config = RunConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.run_name = "other"
    assert hash(config) == hash(RunConfig())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 1}, "--size must be at least 2, got 1"),
        ({"size": 9}, "--size must be less than 9, got 9"),
        ({"size": 4.0}, "--size must be an integer, got 4.0"),
        ({"size": True}, "--size must be an integer, got True"),
        ({"size": "4"}, "--size must be an integer, got '4'"),
        ({"scale": 0.0}, "--scale must be greater than 0.0, got 0.0"),
        ({"scale": True}, "--scale must be a number, got True"),
        ({"scale": None}, "--scale must be a number, got None"),
        (
            {"scale": float("nan")},
            "--scale must be a finite number, got nan",
        ),
        (
            {"scale": float("inf")},
            "--scale must be a finite number, got inf",
        ),
        ({"kind": "c"}, "--kind must be one of: a, b, got 'c'"),
        ({"kind": 3}, "--kind must be a string, got 3"),
        ({"again": 1}, "--again must be true or false, got 1"),
    ],
)
def test_rules(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ruled(**values)
    assert str(caught.value) == message
    assert caught.value.name == next(iter(values))


def test_bounds_themselves() -> None:
    assert Ruled(size=2, scale=1e-9, kind="b", again=True).size == 2
    assert Ruled(size=8, scale=3).scale == 3  # an integer is a number


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/a", "a\\b", "a\0b", "a\nb", " a", "a\t"]
)
def test_run_name_is_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError, match="--run_name must be") as caught:
        RunConfig(run_name=name)
    assert "\n" not in str(caught.value)


def test_batch_is_shared_by_the_replicas() -> None:
    training = TrainingConfig(batch_size=32, num_replicas=3)
    with pytest.raises(ConfigError, match="--num_replicas=3, got 32"):
        RunConfig(training=training)
    RunConfig(training=dataclasses.replace(training, batch_size=33))
    RunConfig(training=dataclasses.replace(training, num_replicas=0))


@pytest.mark.parametrize(
    "flags",
    [
        {"grid_size": 3},
        {"sigma": 0.0},
        {"polarity": "grey"},
        {"coordinates": "polar"},
        {"num_train": -1},
        {"num_bumps": -1},
        {"depth": 0},
        {"width": 0},
        {"rank": 0},
        {"ramp_range": "wide"},
        {"epochs": 0},
        {"steps_per_epoch": -1},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"weight_decay": -0.1},
        {"seed": -1},
        {"seed": 2**31},
        {"precision": "float16"},
        {"num_replicas": -1},
        {"eval_every": -1},
        {"layerwise_every": -1},
        {"checkpoint_seconds": -1.0},
    ],
    ids=str,
)
def test_values_out_of_range(flags: dict[str, object]) -> None:
    ((name, value),) = flags.items()
    with pytest.raises(ConfigError) as caught:
        make_config(flags)
    assert str(caught.value).startswith(f"--{name} must be ")
    assert str(caught.value).endswith(f", got {value!r}")
