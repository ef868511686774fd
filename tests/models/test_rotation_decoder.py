"""The network of rotated digits: published size, stages, other images."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.stages import list_stages
from tfcomp.train import check_config
from tfcomp.training.experiment import make_model


def make(*flags: str) -> keras.Model:
    config = parse_config(["--flagfile=rotated_mnist.flags", *flags])
    return make_model(config, make_dataset(config), "float32")


def count_trained(model: keras.Model) -> int:
    return sum(int(np.prod(w.shape)) for w in model.trainable_weights)


def test_published_number_of_weights() -> None:
    assert count_trained(make("--encoding=ramp")) == 406_913
    assert count_trained(make()) == 413_185  # cos and sin


def test_stages() -> None:
    model = make("--width=4")
    names = ["code", "stage_0", "stage_1", "stage_2", "image"]
    assert list_stages(model) == names
    shapes = [model.get_layer(name).output.shape[1:] for name in names]
    assert shapes == [
        (2,),
        (7, 7, 8),
        (14, 14, 8),
        (28, 28, 4),
        (28, 28, 1),
    ]


def test_it_draws_bumps_as_well() -> None:
    config = parse_config(
        ["--flagfile=smoke.flags", "--model=rotation", "--width=4"]
    )
    check_config(config)
    model = make_model(config, make_dataset(config), "float32")
    assert model.output.shape == (None, 12, 12, 1)


def test_grid_must_be_reached() -> None:
    config: RunConfig = parse_config(["--model=rotation", "--grid_size=30"])
    with pytest.raises(ConfigError, match="multiple of 4"):
        check_config(config)
