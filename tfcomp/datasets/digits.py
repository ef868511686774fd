"""Rotated digits: one image, every angle but a gap (appendix F.2).

With several digits, the digit is a second, categorical factor, so that angles
can be held out for one of them only. Stand-ins, for tests and a first try, are
not MNIST but strokes of a seven-segment display.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.hashes import find_data_dir
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets.dataset import (
    DATASETS,
    Dataset,
    Render,
    build_dataset,
)
from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import draw_training_table

SIZE = 28
NOTE = (
    "stand-in digits: drawn strokes, not MNIST; results do not compare with "
    "the paper's (--digit_source=mnist does)"
)

# Ends of the segments (row, column), and which of them each digit lights.
_TOP = 6.0
_MIDDLE = 13.5
_BOTTOM = 21.0
_LEFT = 9.5
_RIGHT = 17.5
_SEGMENTS = {
    "a": ((_TOP, _LEFT), (_TOP, _RIGHT)),
    "b": ((_TOP, _RIGHT), (_MIDDLE, _RIGHT)),
    "c": ((_MIDDLE, _RIGHT), (_BOTTOM, _RIGHT)),
    "d": ((_BOTTOM, _LEFT), (_BOTTOM, _RIGHT)),
    "e": ((_MIDDLE, _LEFT), (_BOTTOM, _LEFT)),
    "f": ((_TOP, _LEFT), (_MIDDLE, _LEFT)),
    "g": ((_MIDDLE, _LEFT), (_MIDDLE, _RIGHT)),
}
_LIT = "abcdef bc abdeg abcdg bcfg acdfg acdefg abc abcdefg abcdfg".split()
_HALF_WIDTH = 1.2  # px, of a stroke


@DATASETS.register("rotated_digits")
def make_digits(config: RunConfig) -> Dataset:
    """Rotated digits outside the region."""
    data = config.data
    if data.grid_size != SIZE:
        rule = f"must be {SIZE} for the dataset rotated_digits"
        raise ConfigError("grid_size", rule, data.grid_size)
    is_stand_in = data.digit_source == "stand_in"
    if is_stand_in and data.digit_index:
        rule = "must be 0, a stand-in digit has one example"
        raise ConfigError("digit_index", rule, data.digit_index)

    classes = _parse_classes(data)
    load = functools.partial(_load_digits, data, classes)
    space = _make_space(data.num_angles, classes)
    region = parse_region(data.region, space)
    notes: tuple[str, ...] = ()
    about = "Training images of MNIST (LeCun and Cortes), turned by code"
    license = "cc-by-sa-3.0"
    if is_stand_in:
        notes = (NOTE,)
        about = "Digits, drawn by code, turned about their middle"
        license = "mit"
    return build_dataset(
        config,
        space,
        region=region,
        train=_draw_train(config, space, region),
        render=_make_renderer(load, space),
        image_shape=(SIZE, SIZE, 1),
        has_background=True,
        is_continuous=True,
        size_flag="num_angles",
        first_row="top",
        prepare=load,
        notes=notes,
        about=about,
        license=license,
    )


def _load_digits(
    data: DataConfig,
    classes: list[int],
) -> Array:
    """Loads or draws the image of each class, [n, 28, 28]."""
    images = []
    if data.digit_source == "stand_in":
        for digit in classes:
            image = draw_stand_in(digit)
            images.append(image)
        return np.stack(images)

    folder = find_data_dir(data.data_dir)
    for digit in classes:
        image = load_digit(folder, digit, data.digit_index)
        images.append(image)
    return np.stack(images)


def _make_space(
    num_angles: int,
    classes: list[int],
) -> FactorSpace:
    angle = Factor(
        "angle",
        # The published angles are `num_angles` from 0 to 360 degrees
        # inclusive; the last is the first again.
        size=num_angles - 1,
        low=0.0,
        high=360.0,
        unit="degrees",
        periodic=True,
    )
    if len(classes) == 1:
        return FactorSpace((angle,))
    digit = make_categories("digit", classes)
    return FactorSpace((digit, angle))


def _draw_train(
    config: RunConfig,
    space: FactorSpace,
    region: Region,
) -> Array:
    train = draw_training_table(config, space, region)
    if config.data.num_train or config.data.coordinates != "grid":
        return train
    # All of ID has the upright image twice, at 0 and at 360 degrees, as
    # published: 888 images of 1000 angles without 160 to 200 degrees.
    angles = train[:, -1]
    upright = train[angles == 0.0]
    return np.concatenate([train, upright])


def _parse_classes(data: DataConfig) -> list[int]:
    if not data.digit_classes:
        return [data.digit_class]

    parts = data.digit_classes.split(",")
    digits = {part.strip() for part in parts}
    are_digits = digits <= set("0123456789")
    fewest = max(len(parts), 2)
    if not are_digits or len(digits) < fewest:
        rule = "must be at least two different digits, as 0,1,4"
        raise ConfigError("digit_classes", rule, data.digit_classes)
    return sorted(map(int, digits))


def _make_renderer(
    load: Callable[[], Any],
    space: FactorSpace,
) -> Render:
    def render(factors: Any) -> Any:
        """Renders digits [n, H, W, 1], turned by their angles."""
        # Imported here: a bad flag must be answered without TensorFlow.
        import tensorflow as tf

        from tfcomp.datasets.renderers import rotate_images

        with tf.init_scope():  # files are not read inside of a graph
            digits = load()
        count = tf.shape(factors)[:1]
        rows = tf.zeros(count, tf.int32)
        if len(space) > 1:
            levels = space["digit"].values()
            distance = tf.abs(factors[:, :1] - levels)
            rows = tf.argmin(
                distance,
                axis=1,
                output_type=tf.int32,
            )
        images = tf.gather(tf.constant(digits), rows)
        return rotate_images(images, factors[:, -1])

    return render


def draw_stand_in(digit: int) -> Array:
    """Draws a digit, float32 [28, 28] in [0, 1], row 0 at the top."""
    shape = (SIZE, SIZE)
    rows, columns = np.indices(shape)
    distance = np.full(shape, np.inf)
    for name in _LIT[digit]:
        start, end = _SEGMENTS[name]
        top, left = start
        bottom, right = end
        below = rows - np.clip(rows, top, bottom)
        beside = columns - np.clip(columns, left, right)
        from_segment = np.hypot(below, beside)
        distance = np.minimum(distance, from_segment)

    share = _HALF_WIDTH + 0.5 - distance
    pixels = np.clip(share, 0.0, 1.0)
    return pixels.astype(np.float32)


@functools.lru_cache(maxsize=32)
def load_digit(
    folder: Path,
    digit: int,
    index: int,
) -> Array:
    """Loads a training image of MNIST, float32 [28, 28] in [0, 1].

    Args:
        folder: The data folder of TensorFlow Datasets.
        digit: The class.
        index: The number of the image within its class.

    Raises:
        ConfigError: If the class has fewer images.
        RunError: If MNIST is absent or damaged.
    """
    # Checked first, without the time that importing TFDS takes.
    if not [*folder.glob("mnist/*/dataset_info.json")]:
        raise RunError(
            f"--data_dir: no MNIST in {folder}; get it with python -c "
            "\"import tensorflow_datasets as t; t.load('mnist', "
            f"data_dir='{folder}')\", or try --digit_source=stand_in"
        )
    try:
        image = _find_image(folder, digit, index)
    except Exception as error:  # whatever a damaged file leads to
        raise RunError(
            f"--data_dir: MNIST in {folder} cannot be read "
            f"({first_line(error)}); remove {folder / 'mnist'} and get it again"
        ) from error
    if image is None:
        rule = f"must be less than the number of training examples of {digit}"
        raise ConfigError("digit_index", rule, index)
    return image


def _find_image(
    folder: Path,
    digit: int,
    index: int,
) -> Array | None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    examples = tfds.load(
        "mnist",
        split="train",
        data_dir=folder,
        download=False,
        shuffle_files=False,
        decoders={"image": tfds.decode.SkipDecoding()},
        # Small data sets are cached, which warns where reading stops early.
        read_config=tfds.ReadConfig(try_autocache=False),
    )
    same = examples.filter(lambda example: example["label"] == digit)
    first = same.skip(index).take(1)
    for example in first:
        image = tf.io.decode_image(example["image"], channels=1)
        pixels = np.asarray(image)
        pixels = pixels.reshape(SIZE, SIZE)
        return pixels.astype(np.float32) / 255.0
    return None
