"""Decoders: sizes, stages, precision, users' own models."""

import doctest

import keras
import numpy as np
import pytest

from tests.own_factors import TILES
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config, parse_flags
from tfcomp.models import MODELS, encodings, forced_rendering, pixels, registry
from tfcomp.models.registry import (
    make_checked_dataset,
    make_model,
    make_stage_model,
)
from tfcomp.sweeps.sweep_run import define_flags, make_sweep

pytestmark = pytest.mark.usefixtures("untraced")

SMALL = ["--flagfile=smoke.flags"]
MLP = ["--model=mlp", "--width=256"]
LOW_RANK = ["--flagfile=low_rank.flags"]
HARD = ["--flagfile=hard_rendering.flags"]
ROTATION = ["--flagfile=rotated_mnist.flags"]
ODD = ["--dataset=odd", "--region=none"]
FACTORS = np.array(
    [
        [2, 3],
        [4.5, 6.25],
        [11, 0],
    ],
    np.float32,
)


def make(*flags: str) -> keras.Model:
    config = parse_config(flags)
    dataset = make_checked_dataset(config)
    return MODELS.get(config.model.model).load()(config, dataset)


@pytest.mark.parametrize(
    "flags, weights",
    [
        (["--encoding=bump", "--depth=2"], 307_457),
        (["--encoding=bump", "--depth=4"], 381_313),
        (["--encoding=ramp", "--depth=3"], 175_041),
        ([*MLP, "--depth=3"], 347_664),
        (LOW_RANK, 133_218),
        (HARD, 4_908),
        ([*HARD, "--axes=x:columns,y:rows"], 2_860),
        ([*ROTATION, "--encoding=ramp"], 406_913),
        ([*ROTATION, "--encoding=circle"], 413_185),
        (["--model=coordinate", "--width=256", "--depth=2"], 146_435),
    ],
)
def test_published_sizes(flags, weights):
    trained = make(*flags).trainable_weights
    assert sum(np.prod(weight.shape) for weight in trained) == weights


TILED = (
    "--dataset=tiles --region=none --encoding=one_hot --width=8 --depth=2 "
    "--rank=4"
).split()


@pytest.mark.parametrize(
    "name", ["cnn", "mlp", "rotation", "low_rank", "hard_rendering"]
)
def test_images_are_of_the_size_of_the_data(name):
    model = make(f"--model={name}", *TILED)
    points = TILES.grid()[::50]
    image = model(points)

    assert image.shape == (len(points), 12, 16, 3)
    assert np.isfinite(image).all()


def test_output_is_float32_under_mixed_precision():
    config = parse_config(SMALL)
    model = make_model(config, make_checked_dataset(config), "mixed_bfloat16")

    assert model.get_layer("stage_0").compute_dtype == "bfloat16"
    assert model.get_layer("stage_0").variable_dtype == "float32"

    points = FACTORS + np.float32(1 / 3)  # which bfloat16 rounds
    outputs = make_stage_model(model)(points)
    assert outputs["image"].dtype == "float32"

    code = make_stage_model(make(*SMALL))(points)["code"]
    np.testing.assert_array_equal(outputs["code"], code)
    assert outputs["stage_0"].dtype == "bfloat16"


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--model=rotation", "--grid_size=30"], "for the model rotation"),
        ([*ODD, "--model=cnn"], "--model must fit .* these have 12 x 15"),
        ([*LOW_RANK, *ODD, "--rank=13"], "--rank must .* of 12 x 15 pixels"),
        ([*LOW_RANK, "--rank=33"], "--rank must be at most --grid_size=32"),
        ([*LOW_RANK, "--encoding=ramp"], "--encoding must be one_hot or bump"),
        ([*HARD, "--axes=z:rows"], "--axes must be find, or give factors"),
        ([*HARD, "--axes=x:rows,,y:rows"], "--axes must be find, or give"),
        (["--model=film", "--width=6"], "--width must be a multiple of 4"),
        (["--model=transformer", "--patch_size=5"], "--patch_size must be 0,"),
        (["--model=attention", "--groups=x"], "--groups must name each factor"),
        (["--model=slots", "--groups=x+x,y"], "as in x_a[+]y_a,x_b[+]y_b"),
    ],
)
def test_rules_of_the_models(flags, message):
    with pytest.raises(ConfigError, match=message):
        make_checked_dataset(parse_config(flags))
    make_checked_dataset(parse_config([*flags, "--model=mlp"]))


def test_memory_of_this_machine_limits_runs_that_are_here(monkeypatch):
    monkeypatch.setattr(registry, "count_memory", lambda: 10**8)
    config = parse_config(["--grid_size=200", "--eval_points=40000"])

    with pytest.raises(ConfigError, match="--grid_size must be smaller"):
        make_checked_dataset(config)

    make_checked_dataset(config, here=False)
    monkeypatch.setattr(registry, "count_memory", lambda: 10**6)
    with pytest.raises(ConfigError, match="this machine has 0.0 GB"):
        make_sweep(parse_flags(["--depth=3"], define_flags()))

    flags = ["--depth=3", "--scheduler=tcp://there:1"]
    assert make_sweep(parse_flags(flags, define_flags())).items


@pytest.mark.parametrize("module", [encodings, forced_rendering, pixels])
def test_examples_of_layers(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
