"""Rotated digits: one image, every angle but a gap (appendix F.2).

Several digits have the digit as a second, categorical factor, so that a
range of angles can be held out for one of them only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import mnist
from tfcomp.datasets import stand_in_digit as stand_in
from tfcomp.datasets.dataset import Dataset, Render
from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import draw_training_table, make_splits


def make_digits(config: RunConfig) -> Dataset:
    """Rotated digits outside the region.

    Raises:
        ConfigError: For an impossible region, digit or number of examples.
    """
    data = config.data
    if data.grid_size != stand_in.SIZE:
        rule = f"must be {stand_in.SIZE} for the dataset rotated_digits"
        raise ConfigError("grid_size", rule, data.grid_size)
    classes = _parse_classes(data)
    load = _make_loader(data, classes)
    space = _make_space(data.num_angles, classes)
    region = parse_region(data.region, space)
    table = _draw_table(config, space, region)
    is_stand_in = data.digit_source == "stand_in"
    return Dataset(
        name=data.dataset,
        space=space,
        region=region,
        splits=make_splits(space, region, table, config.eval_points),
        render=_make_renderer(load, space),
        image_shape=(stand_in.SIZE, stand_in.SIZE, 1),
        size_flag="num_angles",
        first_row="top",
        prepare=load,
        notes=(stand_in.NOTE,) if is_stand_in else (),
    )


def _parse_classes(data: DataConfig) -> list[int]:
    if not data.digit_classes:
        return [data.digit_class]
    parts = [part.strip() for part in data.digit_classes.split(",")]
    known = set("0123456789")
    if not set(parts) <= known or len(set(parts)) < max(len(parts), 2):
        rule = "must be at least two different digits, as 0,1,4"
        raise ConfigError("digit_classes", rule, data.digit_classes)
    return sorted(map(int, parts))


def _make_space(num_angles: int, classes: list[int]) -> FactorSpace:
    # The published angles are `num_angles` from 0 to 360 degrees inclusive;
    # the last is the first again, so the grid has one less.
    angle = Factor(
        "angle", num_angles - 1, 0.0, 360.0, unit="degrees", periodic=True
    )
    if len(classes) == 1:
        return FactorSpace((angle,))
    return FactorSpace((make_categories("digit", classes), angle))


def _draw_table(
    config: RunConfig, space: FactorSpace, region: Region
) -> np.ndarray:
    # All of ID has the upright image twice, at 0 and at 360 degrees, as
    # published: 888 images of 1000 angles without 160 to 200 degrees.
    table = draw_training_table(config, space, region)
    if config.data.num_train or config.data.coordinates != "grid":
        return table
    upright = table[table[:, -1] == 0.0]
    return np.concatenate([table, upright])


def _make_loader(
    data: DataConfig, classes: list[int]
) -> Callable[[], np.ndarray]:
    # A function that reads the digits, [digits, 28, 28].
    if data.digit_source == "stand_in":
        if data.digit_index:
            rule = "must be 0, a stand-in digit has one example"
            raise ConfigError("digit_index", rule, data.digit_index)
        return lambda: np.stack([stand_in.draw_stand_in(c) for c in classes])
    return lambda: np.stack(
        [mnist.load_digit(data.data_dir, c, data.digit_index) for c in classes]
    )


def _make_renderer(
    load: Callable[[], np.ndarray], space: FactorSpace
) -> Render:
    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        import tensorflow as tf

        from tfcomp.datasets.renderers import rotate_images

        with tf.init_scope():  # files are not read inside of a graph
            digits = load()
        rows = tf.zeros(tf.shape(factors)[:1], tf.int32)
        if len(space) > 1:
            levels = space["digit"].values()
            distance = tf.abs(factors[:, :1] - levels)  # [n, digits]
            rows = tf.argmin(distance, axis=1, output_type=tf.int32)
        chosen = tf.gather(tf.constant(digits), rows)
        return rotate_images(chosen, factors[:, -1])

    return render
