"""The acting decoder against slow definitions, and what it must refuse."""

from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.contrib.acting import canvas
from tfcomp.contrib.acting.transforms import RATES, SHRINK, FactorTransforms
from tfcomp.datasets.batches import make_batches
from tfcomp.models import MODELS
from tfcomp.models.registry import check_config
from tfcomp.models.stages import list_stages
from tfcomp.training.monitor import measure_factors
from tfcomp.training.prepared_models import compile_model

FLAGS = (
    "--flagfile=acting.flags --grid_size=8 --sprite_sizes=2,2,2,3,3 "
    "--region=random:.2 --candidates=3 --epochs=2 --steps_per_epoch=4"
).split()


def make(*flags: str) -> tuple[keras.Model, object, object]:
    config = parse_config([*FLAGS, *flags])
    dataset = check_config(config)
    return MODELS.get("acting").load()(config, dataset), config, dataset


def train(model: keras.Model, config: object, dataset: object) -> None:
    """Trains two steps, without a graph, which takes seconds."""
    compile_model(model, config.training, 2)
    model.run_eagerly = True
    batches = make_batches(dataset, 24, 0, num_steps=2)
    model.fit(batches, steps_per_epoch=2, shuffle=False, verbose=0)


def read_slowly(logits: np.ndarray, x: float, y: float) -> float:
    """Bilinear interpolation from its definition."""
    side, total = len(logits), 0.0
    column, row = ((v + 1) / 2 * (side - 1) for v in (x, y))
    for i in range(side):
        for j in range(side):
            weight = max(0, 1 - abs(row - i)) * max(0, 1 - abs(column - j))
            total += weight * (logits[i, j] - canvas.EMPTY)
    return total + canvas.EMPTY


def test_interpolation(rng: np.random.Generator) -> None:
    logits = rng.normal(size=(2, 5, 5)).astype(np.float32)
    x, y = rng.uniform(-1.6, 1.6, (2, 2, 40)).astype(np.float32)
    found = canvas.sample(tf.constant(logits), tf.constant(x), tf.constant(y))
    pairs = zip(logits, np.stack([x, y], axis=-1), strict=True)
    expected = [[read_slowly(one, *p) for p in points] for one, points in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def draw_one(**pose: float) -> np.ndarray:
    """An arrow to the right, drawn at a pose, on 16 x 16 pixels."""
    logits = np.full((16, 16), -12.0, np.float32)
    logits[6:10, 8:] = 12.0
    numbers = [pose.get(c, 0.0) for c in ("x", "y", "angle", "size")]
    return canvas.draw_shares(
        tf.constant([numbers], tf.float32), tf.constant([logits]), (16, 16), 2
    )[0].numpy()


def find_center(image: np.ndarray) -> tuple[float, float]:
    rows, columns = np.indices(image.shape)
    return tuple(
        (image * place).sum() / image.sum() for place in (columns, rows)
    )


def test_a_pose_moves_turns_and_scales() -> None:
    plain = draw_one(size=np.log(0.5))
    x, y = find_center(plain)
    assert x > 8 and y == pytest.approx(7.5, abs=0.1)
    moved = find_center(draw_one(size=np.log(0.5), x=0.25, y=-0.5))
    np.testing.assert_allclose(moved, (x + 2, y - 4), atol=0.05)
    turned = find_center(draw_one(size=np.log(0.5), angle=np.pi / 2))
    np.testing.assert_allclose(turned, (7.5, x), atol=0.05)
    # Moved last: the place of the middle does not turn.
    both = find_center(draw_one(size=np.log(0.5), angle=np.pi / 2, x=0.25))
    np.testing.assert_allclose(both, (9.5, x), atol=0.05)
    small = draw_one(size=np.log(0.25))
    assert small.sum() == pytest.approx(plain.sum() / 4, rel=0.1)


def test_what_is_in_front_covers_what_is_behind() -> None:
    shares = np.zeros((1, 2, 1, 3), np.float32)
    shares[0, 0, 0] = 1, 0, 0.5
    shares[0, 1, 0] = 1, 1, 1
    colors = np.array([[[0.7], [0.9]]], np.float32)
    image = canvas.compose(*map(tf.constant, (shares, colors, [0.2])))
    np.testing.assert_allclose(image[0, 0, :, 0], [0.7, 0.9, 0.8], atol=1e-6)


def test_blur_keeps_the_sum_and_none_is_the_image(rng) -> None:
    image = np.zeros((1, 24, 24, 2), np.float32)
    image[0, 12, 12] = 1.0, 3.0
    wide = canvas.blur(tf.constant(image), tf.constant(2.0)).numpy()
    np.testing.assert_allclose(wide.sum(axis=(1, 2)), [[1, 3]], rtol=1e-3)
    assert wide[0, 12, 14, 1] / wide[0, 12, 12, 1] == pytest.approx(
        np.exp(-0.5), rel=1e-4
    )
    sharp = canvas.blur(tf.constant(image), tf.constant(-1.0)).numpy()
    np.testing.assert_allclose(sharp, image, atol=1e-6)


@pytest.mark.parametrize("channel", ["x", "angle", "template"])
def test_shrinking_is_the_proximal_step(channel: str) -> None:
    scale = SHRINK.get(channel, 1.0)
    factors = [["a", 3, "ordered"], ["b", 2, "categorical"]]
    layer = FactorTransforms(factors, ["x", "angle", "template"], 2, 1)
    layer.build((None, 5))
    before = layer.moves[channel].numpy().astype(np.float64)
    layer.shrink(tf.constant(0.03), tf.constant(False))
    after = layer.moves[channel].numpy()
    unit = RATES.get(channel, 1.0)
    for candidate in range(2):
        for part in (slice(0, 3), slice(3, 5)):
            old = before[candidate, part]
            rest = old - old.mean(axis=0)
            norm = unit * np.sqrt(np.mean(rest**2))
            new = after[candidate, part]
            new = new - new.mean(axis=0)
            expected = rest * max(0, 1 - 0.03 * scale / norm)
            np.testing.assert_allclose(new, expected, atol=1e-6)


@pytest.mark.parametrize("price", [0.01, 1000.0])
def test_the_shortest_description_is_chosen(
    price: float, rng: np.random.Generator
) -> None:
    """Errors and channels at random; the two that are left, and the one."""
    model, _, _ = make(f"--channel_price={price}", "--candidates=8")
    layer = model.get_layer("acts_0")
    errors = rng.uniform(0.01, 0.1, 8).astype(np.float32)
    used = np.zeros(8)
    for kept in layer.kept.values():
        start = 0
        values = np.zeros(kept.shape)
        for _, size, _ in layer.factors:
            is_used = rng.random(8) < 0.5
            values[is_used, start : start + size] = 1
            used += is_used
            start += size
        kept.assign(values)
    layer.errors.assign(errors)
    running = model._choose(tf.constant(errors), tf.constant(True))
    length = errors + price * used
    best = np.argsort(length, kind="stable")
    left = layer.left.numpy().astype(int)
    np.testing.assert_allclose(length[left], length[best[:2]], rtol=1e-5)
    chosen = int(layer.chosen.numpy())
    assert length[chosen] == pytest.approx(length.min(), rel=1e-5)
    assert float(running) == pytest.approx(errors[chosen], rel=1e-5)
    # Later, none of those that were given up comes back.
    errors[best[2:]] = 0.0
    layer.errors.assign(errors)
    model._choose(tf.constant(errors), tf.constant(False))
    assert int(layer.chosen.numpy()) in left


def test_white_on_gray_is_learned(tmp_path: Path) -> None:
    classes = np.stack(np.indices((3, 3)).reshape(2, -1), axis=1)
    images = np.full((9, 8, 8), 0.5, np.float32)
    for image, (x, y) in zip(images, classes, strict=True):
        image[1 + 2 * y : 3 + 2 * y, 1 + 2 * x : 3 + 2 * x] = 1.0
    path = tmp_path / "gray.npz"
    np.savez(path, images=images, classes=classes, names=["x", "y"])
    flags = ["--dataset=table", f"--data={path}", "--region=x:#1,y:#1"]
    model, _, dataset = make(*flags)
    assert np.ptp(model(dataset.splits.grid)) > 0.1


def test_held_out_images_have_no_say(tmp_path: Path) -> None:
    classes = np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), axis=1)
    rows, columns = np.mgrid[:8, :8]
    images = [
        np.hypot(columns - 2 - 2 * x, rows - 2 - 2 * y) < 1.5 + 0.5 * size
        for size, x, y in classes
    ]
    images = (255 * np.array(images)).astype(np.uint8)
    path, region = tmp_path / "discs.npz", "x:#1,y:#1|x:#2,y:#2"

    def train_on_discs() -> tuple[list[np.ndarray], object]:
        np.savez(path, images=images, classes=classes, names=["size", "x", "y"])
        flags = ["--dataset=table", f"--data={path}", f"--region={region}"]
        model, config, dataset = make(*flags)
        dataset.prepare()
        train(model, config, dataset)
        return model.get_weights(), dataset.splits

    weights, splits = train_on_discs()
    order = [tuple(row) for row in classes.tolist()]
    for point in splits.grid[splits.is_ood].astype(int).tolist():
        images[order.index(tuple(point))] ^= 255
    again, _ = train_on_discs()
    for old, new in zip(weights, again, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    "flags",
    [
        ["--sprite_sizes=2,2,2,3,3,3"],
        [
            *("--dataset=composed", "--num_positions=3"),
            *("--composition=occlusion", "--groups=x_a+y_a,x_b+y_b"),
        ],
        ["--dataset=gaussian_bumps", "--polarity=dark", "--region=square:3-4"],
    ],
    ids=["hue", "composed", "dark bumps"],
)
def test_all_kinds_of_data(flags: list[str], tmp_path: Path) -> None:
    model, config, dataset = make(*flags)
    train(model, config, dataset)
    points = dataset.splits.grid[:7]
    image = model(points).numpy()
    assert image.shape == (7, *dataset.image_shape)
    assert np.isfinite(image).all() and 0 <= image.min() <= image.max() <= 1
    assert set(measure_factors(model)) == set(dataset.space.names)
    assert {"stage_0", "image"} <= set(list_stages(model))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(points), image)
    # Saved models name weights by classes: as in earlier versions.
    model.save_weights(tmp_path / "model.weights.h5")
    with h5py.File(tmp_path / "model.weights.h5") as file:
        count = len(file["layers/acts/vars"])
    assert count == len(model.get_layer("acts_0").weights)


def test_other_candidates_draw_nothing() -> None:
    grid = make()[2].splits.grid
    for chosen in (0, 2):
        model, _, _ = make()
        acts = next(x for x in model.layers if isinstance(x, FactorTransforms))
        acts.chosen.assign(float(chosen))
        drawn, channels = model(grid), measure_factors(model)
        for part in (acts.base, acts.moves, acts.kept):
            for weight in part.values():
                values = np.zeros(weight.shape, np.float32)
                values[chosen] = weight[chosen]
                weight.assign(values)
        np.testing.assert_array_equal(model(grid), drawn)
        assert measure_factors(model) == channels


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--encoding=bump", "--encoding must be one_hot"),
        ("--precision=mixed_bfloat16", "--precision must be float"),
        ("--l1_weight=0.1", "--l1_weight must be 0.0 for the model"),
        ("--channels=x,x", "--channels must be all, or some of"),
        ("--channels=x,color", "--channels must be all, or some"),
        ("--groups=x+y", "--groups must name each factor once"),
        ("--num_replicas=2", "--num_replicas must be at most 1"),
    ],
)
def test_rules(flag: str, message: str) -> None:
    flags = ["--flagfile=acting.flags", flag]
    with pytest.raises(ConfigError, match=message):
        check_config(parse_config(flags))
    check_config(parse_config([*flags, "--model=mlp"]))
