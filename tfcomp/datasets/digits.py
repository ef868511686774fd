"""Rotated digits: one image, every angle but a gap (appendix F.2).

With several digits, the digit is a second, categorical factor, so that angles
can be held out for one of them only. Stand-ins, for tests and a first try, are
not MNIST but strokes of a seven-segment display.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_files import find_data_dir
from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets.building import DATASETS, build_dataset
from tfcomp.datasets.dataset import Dataset, Render
from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import draw_training_table

SIZE = 28
NOTE = (
    "stand-in digits: drawn strokes, not MNIST; results do not compare with "
    "the paper's (--digit_source=mnist does)"
)

# Ends of the segments, and which of them each digit lights.
_TOP, _MIDDLE, _BOTTOM, _LEFT, _RIGHT = 6.0, 13.5, 21.0, 9.5, 17.5
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


@DATASETS.register("rotated_digits")
def make_digits(config: RunConfig) -> Dataset:
    """Rotated digits outside the region."""
    data = config.data
    if data.grid_size != SIZE:
        rule = f"must be {SIZE} for the dataset rotated_digits"
        raise ConfigError("grid_size", rule, data.grid_size)
    classes = _parse_classes(data)
    is_stand_in = data.digit_source == "stand_in"
    if is_stand_in and data.digit_index:
        rule = "must be 0, a stand-in digit has one example"
        raise ConfigError("digit_index", rule, data.digit_index)

    def load() -> np.ndarray:
        if is_stand_in:
            return np.stack([draw_stand_in(digit) for digit in classes])
        folder, index = find_data_dir(data.data_dir), data.digit_index
        return np.stack([load_digit(folder, c, index) for c in classes])

    # The published angles are `num_angles` from 0 to 360 degrees inclusive;
    # the last is the first again, so the grid has one less.
    count = data.num_angles - 1
    angle = Factor("angle", count, 0.0, 360.0, "degrees", periodic=True)
    several = (make_categories("digit", classes),) if len(classes) > 1 else ()
    space = FactorSpace((*several, angle))
    region = parse_region(data.region, space)
    train = draw_training_table(config, space, region)
    if not data.num_train and data.coordinates == "grid":
        # All of ID has the upright image twice, at 0 and at 360 degrees, as
        # published: 888 images of 1000 angles without 160 to 200 degrees.
        train = np.concatenate([train, train[train[:, -1] == 0.0]])
    return build_dataset(
        config,
        space,
        region=region,
        train=train,
        render=_make_renderer(load, space),
        image_shape=(SIZE, SIZE, 1),
        has_background=True,
        is_continuous=True,
        size_flag="num_angles",
        first_row="top",
        prepare=load,
        notes=(NOTE,) if is_stand_in else (),
        about="Digits, drawn by code, turned about their middle"
        if is_stand_in
        else "Training images of MNIST (LeCun and Cortes), turned by code",
        license="mit" if is_stand_in else "cc-by-sa-3.0",
    )


def _parse_classes(data: DataConfig) -> list[int]:
    if not data.digit_classes:
        return [data.digit_class]
    parts = [part.strip() for part in data.digit_classes.split(",")]
    if not {*parts} <= {*"0123456789"} or len({*parts}) < max(len(parts), 2):
        rule = "must be at least two different digits, as 0,1,4"
        raise ConfigError("digit_classes", rule, data.digit_classes)
    return sorted(map(int, parts))


def _make_renderer(load: Callable[[], Any], space: FactorSpace) -> Render:
    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        import tensorflow as tf

        from tfcomp.datasets.renderers import rotate_images

        with tf.init_scope():  # files are not read inside of a graph
            digits = load()
        rows = tf.zeros(tf.shape(factors)[:1], tf.int32)
        if len(space) > 1:
            distance = tf.abs(factors[:, :1] - space["digit"].values())
            rows = tf.argmin(distance, axis=1, output_type=tf.int32)
        chosen = tf.gather(tf.constant(digits), rows)
        return rotate_images(chosen, factors[:, -1])

    return render


def draw_stand_in(digit: int) -> np.ndarray:
    """Draws a digit, float32 [28, 28] in [0, 1], row 0 at the top."""
    pixels = np.moveaxis(np.mgrid[:SIZE, :SIZE], 0, -1).astype(float)
    distances = []
    for start, end in (_SEGMENTS[name] for name in _LIT[digit]):
        along = np.subtract(end, start)
        place = (pixels - start) @ along / (along @ along)
        nearest = start + np.clip(place, 0.0, 1.0)[..., None] * along
        distances.append(np.linalg.norm(pixels - nearest, axis=-1))
    share = 1.2 + 0.5 - np.min(distances, axis=0)  # half the width is 1.2 px
    return np.clip(share, 0.0, 1.0).astype(np.float32)


@functools.lru_cache(maxsize=32)
def load_digit(folder: Path, digit: int, index: int) -> np.ndarray:
    """Returns a training image of MNIST, counted within its class."""
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
        # TensorFlow puts the names of graph nodes around the message.
        text = re.sub(r"(?s)\{\{.*?\}\}|\[Op:.*", "", str(error))
        raise RunError(
            f"--data_dir: MNIST in {folder} cannot be read "
            f"({first_line(error, text)}); remove {folder / 'mnist'} and get "
            "it again"
        ) from error
    if image is None:
        rule = f"must be less than the number of training examples of {digit}"
        raise ConfigError("digit_index", rule, index)
    return image


def _find_image(folder: Path, digit: int, index: int) -> np.ndarray | None:
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
    for example in same.skip(index).take(1):
        pixels = np.asarray(tf.io.decode_image(example["image"], channels=1))
        return pixels.reshape(SIZE, SIZE).astype(np.float32) / 255.0
    return None
