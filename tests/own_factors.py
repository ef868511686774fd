"""A data set as a plugin makes one: many factors of all kinds, in color."""

from typing import Any

import numpy as np

from tfcomp.datasets import (
    DATASETS,
    Dataset,
    Factor,
    FactorSpace,
    make_splits,
    parse_region,
)

HEIGHT, WIDTH = 12, 16
COLORS = ("red", "green", "blue")
# The values of `size` are not evenly spaced.
TILES = FactorSpace(
    (
        Factor("x", 6, 2.0, 12.0, unit="px"),
        Factor("size", 4, 1.0, 4.0, unit="px", levels=(1.0, 1.5, 2.5, 4.0)),
        Factor("phase", 5, 0.0, 360.0, unit="degrees", periodic=True),
        Factor("color", 3, 0.0, 2.0, categorical=True, names=COLORS),
    )
)
ONE = FactorSpace((TILES.factors[0],))


def _make_factor(number: int) -> Factor:
    """A factor of two values: ordered, periodic, or categorical."""
    is_named = number > 3
    is_angle = number == 2
    return Factor(
        f"f{number}",
        size=2,
        low=0.0,
        high=1.0,
        categorical=is_named,
        periodic=is_angle,
    )


SEVEN = FactorSpace(tuple(map(_make_factor, range(7))))
# `odd` has a width that is no multiple of 4.
SPACES = {"tiles": TILES, "one": ONE, "seven": SEVEN, "odd": TILES}
# Held out, a region for each.
REGIONS = {
    "tiles": "box:x:6-10,size:2-4,color:1-2",
    "one": "gap:x:6-9",
    "seven": "box:f0:1-1,f1:1-1,f5:1-1",
}


def render(factors: Any) -> Any:
    """A blob at x whose width, height above the ground and color vary."""
    import tensorflow as tf

    values = tf.cast(factors, tf.float32)[:, :, None, None]
    missing = 7 - values.shape[1]
    values = tf.pad(values, [[0, 0], [0, missing], [0, 0], [0, 0]])
    x, size, phase, color, *others = tf.unstack(values, axis=1)
    height = tf.sin(phase * np.pi / 180)
    y = 6.0 + 3.0 * height + sum(others)

    rows = tf.range(HEIGHT, dtype=tf.float32)[:, None]
    columns = tf.range(WIDTH, dtype=tf.float32)
    distance = (columns - x) ** 2 + (rows - y) ** 2
    width = 2 * (size + 0.5) ** 2
    blob = tf.exp(-distance / width)
    channels = tf.range(3, dtype=tf.float32)
    is_lit = channels == tf.round(color)[..., None]
    light = blob[..., None] * tf.cast(is_lit, tf.float32)
    return 0.2 + 0.7 * light


def make(config: Any) -> Dataset:
    """The data set that `--dataset` names."""
    name = config.data.dataset
    space = SPACES[name]
    region = parse_region(config.data.region, space)
    grid = space.grid()
    train = grid[~region.contains(grid)]
    splits = make_splits(space, region, train, config.eval_points)
    width = WIDTH - (name == "odd")
    return Dataset(name, space, region, splits, render, (HEIGHT, width, 3))


for name in SPACES:
    DATASETS.register(name, make)
