"""CNN and MLP decoders: sizes, stages, precision, users' own models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset
from tfcomp.datasets import make_dataset
from tfcomp.models import MODELS
from tfcomp.models.stages import list_stages
from tfcomp.models.stages import make_stage_model
from tfcomp.train import check_config

SMALL = ["--flagfile=smoke.flags"]
FACTORS = np.array([[2, 3], [4.5, 6.25], [11, 0]], np.float32)


def make(*flags: str) -> keras.Model:
    config = parse_config(flags)
    check_config(config)
    build = MODELS.get(config.model.model).load()
    return build(config, make_dataset(config))


@pytest.fixture
def mixed_precision() -> Iterator[None]:
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize(
    ("encoding", "depth", "weights"),
    [
        ("bump", 2, 307_457),
        ("bump", 3, 344_385),
        ("bump", 4, 381_313),
        ("ramp", 2, 138_113),
        ("ramp", 3, 175_041),
        ("ramp", 4, 211_969),
    ],
)
def test_published_sizes_of_the_cnn(
    encoding: str, depth: int, weights: int
) -> None:
    model = make(f"--encoding={encoding}", f"--depth={depth}")
    assert model.count_params() == weights


@pytest.mark.parametrize(("depth", "weights"), [(2, 281_872), (3, 347_664)])
def test_published_sizes_of_the_mlp(depth: int, weights: int) -> None:
    model = make("--model=mlp", "--width=256", f"--depth={depth}")
    assert model.count_params() == weights


def shapes_of(model: keras.Model) -> dict[str, tuple[int, ...]]:
    outputs = make_stage_model(model)(FACTORS[:1])
    return {name: tuple(outputs[name].shape[1:]) for name in outputs}


def test_stages_of_the_cnn() -> None:
    model = make("--depth=4", "--width=8")
    assert shapes_of(model) == {
        "code": (56,),
        "stage_0": (7, 7, 8),
        "stage_1": (14, 14, 8),
        "stage_2": (28, 28, 8),
        "stage_3": (28, 28, 8),
        "stage_4": (28, 28, 8),
        "image": (28, 28, 1),
    }
    numbered = [f"stage_{index}" for index in range(5)]
    assert list_stages(model) == ["code", *numbered, "image"]


def test_stages_of_the_mlp() -> None:
    model = make("--model=mlp", "--depth=2", "--width=9")
    assert list_stages(model) == ["code", "stage_0", "stage_1", "image"]
    assert shapes_of(model) == {
        "code": (56,),
        "stage_0": (9,),
        "stage_1": (9,),
        "image": (28, 28, 1),
    }


@pytest.mark.parametrize("size", [12, 32])
@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_grid_sizes(name: str, size: int) -> None:
    model = make(
        f"--model={name}",
        f"--grid_size={size}",
        "--region=square:4-8",
        "--width=8",
        "--depth=2",
    )
    image = model.predict(FACTORS, verbose=0)
    assert image.shape == (3, size, size, 1)
    assert np.isfinite(image).all()


@pytest.mark.parametrize("name", ["cnn", "mlp"])
@pytest.mark.parametrize("encoding", ["bump", "ramp", "one_hot", "positional"])
def test_every_encoding_draws_different_images(
    name: str, encoding: str
) -> None:
    keras.utils.set_random_seed(0)
    model = make(*SMALL, f"--model={name}", f"--encoding={encoding}")
    images = model.predict(FACTORS, verbose=0)
    assert images.shape == (3, 12, 12, 1)
    assert np.abs(images[0] - images[1]).max() > 1e-6
    assert np.abs(images[0] - images[2]).max() > 1e-6


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_absent_factors_give_finite_images(name: str) -> None:
    stripes = np.array([[3, np.nan], [np.nan, 5]], np.float32)
    images = make(*SMALL, f"--model={name}").predict(stripes, verbose=0)
    assert np.isfinite(images).all()


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_output_is_float32_under_mixed_precision(
    name: str, mixed_precision: None
) -> None:
    model = make(*SMALL, f"--model={name}")
    assert model.get_layer("stage_0").compute_dtype == "bfloat16"
    assert model.get_layer("stage_0").variable_dtype == "float32"
    outputs = make_stage_model(model)(FACTORS)
    assert outputs["image"].dtype == "float32"
    assert outputs["code"].dtype == "float32"
    assert outputs["stage_0"].dtype == "bfloat16"


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_stage_model_shares_the_weights(name: str) -> None:
    model = make(*SMALL, f"--model={name}")
    stages = make_stage_model(model)
    before = stages(FACTORS)["image"]
    np.testing.assert_array_equal(before, model(FACTORS))
    model.set_weights([2 * weight + 0.1 for weight in model.get_weights()])
    after = stages(FACTORS)["image"]
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_array_equal(after, model(FACTORS))


def test_hidden_stages_are_rectified() -> None:
    outputs = make_stage_model(make(*SMALL))(FACTORS)
    for stage in ("stage_0", "stage_1", "stage_2"):
        assert np.min(outputs[stage]) == 0.0
    assert np.min(outputs["image"]) < 0.0


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_saved_model_draws_the_same(name: str, tmp_path: Path) -> None:
    model = make(*SMALL, f"--model={name}")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert list_stages(loaded) == list_stages(model)
    np.testing.assert_array_equal(
        loaded.predict(FACTORS, verbose=0), model.predict(FACTORS, verbose=0)
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--grid_size=30"], "--grid_size must be a multiple of 4"),
        (["--depth=1"], "--depth must be at least 2 for the model cnn"),
    ],
)
def test_rules_of_the_cnn(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_config(parse_config(flags))
    check_config(parse_config([*flags, "--model=mlp"]))


def test_user_chooses_a_model_of_their_own_by_name() -> None:
    @MODELS.register("dot_for_this_test")
    def build_dot(config: RunConfig, dataset: Dataset) -> keras.Model:
        factors = keras.Input((len(dataset.space),), name="factors")
        dot = keras.layers.Dense(config.model.width, name="stage_0")(factors)
        pixels = keras.layers.Dense(144)(dot)
        image = keras.layers.Reshape((12, 12, 1), name="image")(pixels)
        return keras.Model(factors, image)

    model = make(*SMALL, "--model=dot_for_this_test", "--width=3")
    assert list_stages(model) == ["stage_0", "image"]
    assert model.get_layer("stage_0").units == 3


def make_foreign_model() -> keras.Model:
    factors = keras.Input((2,))
    hidden = keras.layers.Dense(3, name="stage_a")(factors)
    return keras.Model(factors, keras.layers.Dense(4, name="out")(hidden))


def test_stages_of_a_foreign_model_are_given() -> None:
    model = make_foreign_model()
    assert list_stages(model) == []
    outputs = make_stage_model(model, ["out", "stage_a"])(FACTORS)
    assert {k: tuple(v.shape) for k, v in outputs.items()} == {
        "out": (3, 4),
        "stage_a": (3, 3),
    }
    np.testing.assert_array_equal(outputs["out"], model(FACTORS))


@pytest.mark.parametrize("stages", [None, []])
def test_stage_model_without_stages(stages: list | None) -> None:
    with pytest.raises(ValueError, match="give the layers to analyze"):
        make_stage_model(make_foreign_model(), stages)


def test_stage_model_of_an_unknown_layer() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        make_stage_model(make_foreign_model(), ["out", "nowhere"])
