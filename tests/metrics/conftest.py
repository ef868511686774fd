"""Studies of planted models: known stages and outputs on a small grid."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy import ndarray as Array

from tests.metrics.planted import add_nearest
from tfcomp.config.run_flags import parse_config
from tfcomp.metrics.interpolation import interpolate_edges
from tfcomp.metrics.references import compute_border_distance

# A dark bump on 16 x 16 pixels, the middle held out.
BUMPS = ("--flagfile=smoke.flags", "--grid_size=16", "--region=square:3-12")
# The same on 8 x 8 pixels.
FEW_BUMPS = ("--flagfile=smoke.flags", "--grid_size=8", "--region=square:3-4")
# A drawn digit at 90 angles, 160 to 200 degrees held out.
ROTATION = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=90",
)


def get_sign(dataset) -> float:
    if dataset.polarity == "dark":
        return -1.0
    return 1.0


def render_truth(dataset) -> Array:
    truth = dataset.render_array(dataset.splits.grid)
    return get_sign(dataset) * (truth - dataset.ground)


def plant_two_memories(dataset) -> Array:
    """True ID images; OOD, the nearest sharing x plus the nearest sharing y."""
    splits = dataset.splits
    return add_nearest(render_truth(dataset), splits.grid, splits.is_ood)


def plant_fading(dataset) -> Array:
    distance = compute_border_distance(dataset.splits.is_ood, dataset.space)
    weight = 1 - distance / (distance.max() + 1)
    return render_truth(dataset) * weight[:, None, None, None]


def plant_interpolated(dataset) -> Array:
    """In the gap, the linear interpolation of the images at its edges."""
    (factor,) = dataset.space
    truth = render_truth(dataset)
    return interpolate_edges(truth, dataset.splits.is_ood, factor.cycle)


def plant_blank(dataset) -> Array:
    return np.zeros_like(render_truth(dataset))


# Bright images over the grid, by what they do at held-out points.
PLANTED = {
    "truth": render_truth,
    "two memories": plant_two_memories,
    "fading": plant_fading,
    "blank": plant_blank,
    "interpolated": plant_interpolated,
}


def look_up(dataset, images: Array) -> Callable:
    """Makes a function to the image of the nearest grid point."""
    import tensorflow as tf

    low = [factor.low for factor in dataset.space]
    step = [factor.step for factor in dataset.space]
    shape = (*dataset.space.shape, *dataset.image_shape)
    table = tf.constant(images.reshape(shape), tf.float32)

    def call(factors):
        index = tf.round((factors - low) / step)
        return tf.gather_nd(table, tf.cast(index, tf.int32))

    return call


@pytest.fixture(scope="session")
def make_study() -> Callable:
    """Builds a study from outputs, flags, and stages as functions."""
    import keras

    from tfcomp.datasets import make_dataset
    from tfcomp.metrics.run_analysis import RunAnalysis
    from tfcomp.models.loading import LoadedRun

    def make(
        plant: str | Callable,
        *flags: str,
        base: tuple[str, ...] = BUMPS,
        **stages: Callable,
    ) -> RunAnalysis:
        """`plant` names `PLANTED` outputs, or makes some from a dataset."""
        plant = PLANTED.get(plant, plant)
        config = parse_config([*base, *flags])
        dataset = make_dataset(config)
        images = dataset.ground + get_sign(dataset) * plant(dataset)

        num_factors = len(dataset.space)
        factors = keras.Input((num_factors,), name="factors")
        functions = {"image": look_up(dataset, images), **stages}
        outputs = []
        for name, function in functions.items():
            stage = keras.layers.Lambda(function, name=name)
            outputs.append(stage(factors))
        # The stages hang on the image, or they would be no part of the model.
        first = keras.layers.Lambda(lambda parts: parts[0], name="last")
        model = keras.Model(factors, first(outputs))
        run = LoadedRun(
            Path("run"),
            config,
            dataset,
            model,
            {},
            "",
        )
        return RunAnalysis.of_run(run)

    return make


@pytest.fixture(scope="session")
def make_small(make_study) -> Callable:
    return functools.partial(make_study, base=FEW_BUMPS)


@pytest.fixture(scope="session")
def make_turned(make_study) -> Callable:
    return functools.partial(make_study, base=ROTATION)
