"""The acting decoder against slow definitions, and what it must refuse."""

from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy import ndimage

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.contrib.acting import acting_layers, first_poses
from tfcomp.contrib.acting.acting_layers import RATES, SHRINK, FactorTransforms
from tfcomp.datasets import Dataset
from tfcomp.models import MODELS
from tfcomp.models.registry import list_stages, make_checked_dataset
from tfcomp.train import run_training
from tfcomp.training.fit import make_batches
from tfcomp.training.monitor import measure_factors
from tfcomp.training.prepared_models import compile_model

LINE = (
    "acting --grid_size=8 --sprite_sizes=2,2,2,3,3 --region=random:.2 "
    "--candidates=3 --epochs=2 --steps_per_epoch=4"
)


def make(*flags: str) -> tuple[keras.Model, RunConfig, Dataset]:
    config = parse_config([*LINE.split(), *flags])
    dataset = make_checked_dataset(config)
    build = MODELS.get("acting").load()
    return build(config, dataset), config, dataset


# The canvas


def read_slowly(logits: np.ndarray, x: float, y: float) -> float:
    """Bilinear interpolation from its definition."""
    places = np.arange(len(logits))
    column = (x + 1) / 2 * places[-1]
    row = (y + 1) / 2 * places[-1]
    right = np.maximum(0, 1 - np.abs(column - places))
    down = np.maximum(0, 1 - np.abs(row - places))
    return acting_layers.EMPTY + down @ (logits - acting_layers.EMPTY) @ right


def test_interpolation(rng):
    logits = rng.standard_normal((2, 5, 5), np.float32)
    x, y = rng.standard_normal((2, 2, 40), np.float32)

    samples = acting_layers.sample(logits, x, y).numpy()

    for (n, place), value in np.ndenumerate(samples):
        expected = read_slowly(logits[n], x[n, place], y[n, place])
        assert value == approx(expected, abs=1e-5)


def render_arrow(**pose: float) -> np.ndarray:
    """An arrow to the right at a pose, on 16 x 16 pixels."""
    logits = np.full((1, 16, 16), -12.0, np.float32)
    logits[0, 6:10, 8:] = 12.0
    numbers = [pose.get(term, 0.0) for term in first_poses.POSE]
    poses = np.array([numbers], np.float32)
    (share,) = acting_layers.render_shares(
        poses,
        canvas=logits,
        shape=(16, 16),
        subpixels=2,
    )
    return share.numpy()


def find_center(image: np.ndarray) -> list[float]:
    """The center of mass, [x, y]."""
    y, x = ndimage.center_of_mass(image)
    return [x, y]


def test_a_pose_moves_turns_and_scales():
    half = np.log(0.5)
    plain = render_arrow(size=half)
    x, y = find_center(plain)
    assert x > 8
    assert y == approx(7.5, abs=0.1)

    turn = np.pi / 2
    for pose, center in (
        ({"x": 0.25, "y": -0.5}, [x + 2, y - 4]),
        ({"angle": turn}, [7.5, x]),
        # Moved last: the place of the middle does not turn.
        ({"angle": turn, "x": 0.25}, [9.5, x]),
    ):
        image = render_arrow(size=half, **pose)
        assert_allclose(find_center(image), center, atol=0.05)

    small = render_arrow(size=np.log(0.25))
    assert small.sum() == approx(plain.sum() / 4, rel=0.1)


def test_what_is_in_front_covers_what_is_behind():
    front = [1.0, 0.0, 0.5]
    behind = [1.0, 1.0, 1.0]
    shares = np.float32([front, behind])
    colors = np.float32([[0.7], [0.9]])

    (image,) = acting_layers.compose(
        shares[None, :, None],
        colors=colors[None],
        background=[0.2],
    )

    expected = [0.7, 0.9, 0.8]
    assert_allclose(image[0, :, 0], expected, atol=1e-6)


def test_blur_keeps_the_sum_and_none_is_the_image():
    image = np.zeros((1, 24, 20, 2), np.float32)
    image[0, 12, 10] = 1.0, 3.0

    wide = acting_layers.blur(image, 2.0).numpy()
    sharp = acting_layers.blur(image, -1.0)

    sums = wide.sum(axis=(1, 2))
    assert_allclose(sums, [[1, 3]], rtol=1e-3)
    row = wide[0, 12, :, 1]
    assert row[12] / row[10] == approx(np.exp(-0.5), rel=1e-4)
    assert_allclose(sharp, image, atol=1e-6)


# Transforms and candidates


@pytest.mark.parametrize("term", ["x", "angle", "template"])
def test_shrinking_is_the_proximal_step(term):
    factors = [["a", 3, "ordered"], ["b", 2, "categorical"]]
    layer = FactorTransforms(
        factors,
        channels=["x", "angle", "template"],
        candidates=2,
        colors=1,
    )
    layer.build((None, 5))
    before = layer.moves[term].numpy().astype(np.float64)

    layer.shrink(0.03, is_over=False)

    after = layer.moves[term].numpy()
    step = 0.03 * SHRINK.get(term, 1.0)
    old_parts = np.split(before, [3], axis=1)
    new_parts = np.split(after, [3], axis=1)
    for old_part, new_part in zip(old_parts, new_parts, strict=True):
        for old, new in zip(old_part, new_part, strict=True):
            moves = new - new.mean(axis=0)
            rest = old - old.mean(axis=0)
            spread = RATES.get(term, 1.0) * rest.std()
            kept = max(0, 1 - step / spread)
            assert_allclose(moves, kept * rest, atol=1e-6)


@pytest.mark.parametrize("price", [0.01, 1000.0])
def test_the_shortest_description_is_chosen(price, rng):
    model, _, _ = make(f"--channel_price={price}", "--candidates=8")
    layer = model.get_layer("acts_0")
    used = np.zeros(8)
    sizes = [size for _, size, _ in layer.factors]
    for kept in layer.kept.values():
        is_used = rng.integers(0, 2, (8, len(sizes)))
        values = np.repeat(is_used, sizes, axis=1)
        kept.assign(values[..., None])
        used += is_used.sum(axis=1)
    errors = np.float32(rng.uniform(0.01, 0.1, 8))
    layer.errors.assign(errors)

    model._choose(errors, is_early=True)

    length = errors + price * used
    left = layer.left.numpy().astype(int)
    shortest = np.sort(length)[:2]
    assert_allclose(length[left], shortest, rtol=1e-5)
    chosen = int(layer.chosen.numpy())
    assert length[chosen] == approx(length.min(), rel=1e-5)

    # Later, none of those that were given up comes back.
    kept_errors = errors[left]
    errors[:] = 0
    errors[left] = kept_errors
    layer.errors.assign(errors)
    model._choose(errors, is_early=False)
    assert int(layer.chosen.numpy()) in left


def test_other_candidates_draw_nothing():
    model, _, dataset = make()
    layer = model.get_layer("acts_0")
    layer.chosen.assign(2.0)
    images = model(dataset.splits.grid)
    terms = measure_factors(model)

    for weight in layer.weights:
        if len(weight.shape) == 3:
            values = np.zeros(weight.shape)
            values[2] = weight[2]
            weight.assign(values)

    assert_array_equal(model(dataset.splits.grid), images)
    assert measure_factors(model) == terms


# Data


def save_gray(path: Path) -> list[str]:
    """White squares on gray at 3 x 3 places."""
    classes = np.argwhere(np.ones((3, 3)))
    images = []
    for x, y in classes:
        places = np.zeros((3, 3))
        places[y, x] = 0.5
        square = np.kron(places, np.ones((2, 2)))
        images.append(0.5 + np.pad(square, 1))
    np.savez(
        path,
        images=images,
        classes=classes,
        names=["x", "y"],
    )
    return ["--dataset=table", f"--data={path}", "--region=x:#1,y:#1"]


def test_held_out_images_have_no_say(tmp_path):
    path = tmp_path / "gray.npz"
    flags = save_gray(path)
    model, _, dataset = make(*flags)
    assert np.ptp(model(dataset.splits.grid)) > 0.1  # white on gray

    with np.load(path) as file:
        arrays = dict(file)
    arrays["images"][4] = 0.0  # the middle
    np.savez(path, **arrays)
    again, _, _ = make(*flags)

    np.testing.assert_equal(again.get_weights(), model.get_weights())


@pytest.mark.parametrize(
    "flags",
    [
        "--sprite_sizes=2,2,2,3,3,3",
        "--dataset=composed --num_positions=3 --composition=occlusion "
        "--groups=x_a+y_a,x_b+y_b",
        "--dataset=gaussian_bumps --polarity=dark --region=square:3-4",
    ],
    ids=["hue", "composed", "dark bumps"],
)
def test_all_kinds_of_data(flags, tmp_path):
    model, config, dataset = make(*flags.split())
    compile_model(model, config.training, 1)
    model.run_eagerly = True  # a graph takes seconds
    batches = make_batches(dataset, 24, 0, num_steps=1)

    model.fit(batches, shuffle=False, verbose=0)

    points = dataset.splits.grid[:7]
    images = model(points).numpy()
    assert images.shape == (7, *dataset.image_shape)
    assert 0 <= images.min() <= images.max() <= 1
    assert set(measure_factors(model)) == set(dataset.space.names)
    assert {"stage_0", "image"} <= set(list_stages(model))

    file = tmp_path / "model.keras"
    model.save(file)
    again = keras.models.load_model(file)
    assert_array_equal(again(points), images)

    # Saved models name weights by classes: as in earlier versions.
    weights_file = tmp_path / "model.weights.h5"
    model.save_weights(weights_file)
    layer = model.get_layer("acts_0")
    with h5py.File(weights_file) as members:
        assert len(members["layers/acts/vars"]) == len(layer.weights)


@pytest.mark.parametrize(
    "flag",
    [
        "--encoding=bump",
        "--precision=mixed_bfloat16",
        "--l1_weight=0.1",
        "--channels=x,color",
        "--groups=x+y",
        "--num_replicas=2",
    ],
)
def test_rules(flag):
    flags = ["--flagfile=acting.flags", flag]
    with pytest.raises(ConfigError, match=flag.partition("=")[0]):
        make_checked_dataset(parse_config(flags))
    make_checked_dataset(parse_config([*flags, "--model=mlp"]))


@pytest.mark.slow
def test_a_hue_without_color_is_not_fitted(tmp_path):
    """Four hues would turn the square to no effect, as they start."""
    flags = [
        "--flagfile=acting.flags",
        "--sprite_sizes=1,2,1,4,4,5",
        "--region=scale:1,x:#2-3,hue:#0",
        "--candidates=8",
        "--epochs=8",
        "--nopictures",
        "--noexport",
        f"--log_dir={tmp_path}",
        f"--export_dir={tmp_path}",
    ]

    colored = run_training(parse_config([*flags, "--run_name=colored"]))
    flags += ["--run_name=plain", "--channels=x,y,angle,size,template"]
    plain = run_training(parse_config(flags))

    assert set(colored["channels"]["hue"]) == {"color"}
    assert colored["ood"]["relative_mse"] < 0.05
    error = plain["id"]["relative_mse"]
    assert error > 5 * colored["id"]["relative_mse"]
    assert error > 0.05
