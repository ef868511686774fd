"""Studies of planted models: known stages and outputs on a small grid."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.metrics.interpolation import interpolate_edges
from tfcomp.metrics.references import compute_border_distance

# A dark bump on 16 x 16 pixels, the middle held out.
BUMPS = ("--flagfile=smoke.flags", "--grid_size=16", "--region=square:3-12")
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


def render_truth(dataset) -> np.ndarray:
    truth = dataset.render_array(dataset.splits.grid)
    return get_sign(dataset) * (truth - dataset.ground)


def plant_two_memories(dataset) -> np.ndarray:
    """True ID images; OOD, the nearest sharing x plus the nearest sharing y."""
    images = render_truth(dataset)
    known = images.copy()
    splits = dataset.splits
    for i in np.flatnonzero(splits.is_ood):
        offsets = np.abs(splits.grid - splits.grid[i])
        distance = offsets.sum(axis=1, keepdims=True)
        shares = (offsets == 0) & splits.is_id[:, None]
        nearest = np.where(shares, distance, np.inf).argmin(axis=0)
        images[i] = known[nearest].sum(axis=0)  # one for x and one for y
    return images


def plant_fading(dataset) -> np.ndarray:
    distance = compute_border_distance(dataset.splits.is_ood, dataset.space)
    weight = 1 - distance / (distance.max() + 1)
    return render_truth(dataset) * weight[:, None, None, None]


def plant_interpolated(dataset) -> np.ndarray:
    """In the gap, the linear interpolation of the images at its edges."""
    (factor,) = dataset.space
    truth = render_truth(dataset)
    return interpolate_edges(truth, dataset.splits.is_ood, factor.cycle)


def plant_blank(dataset) -> np.ndarray:
    return np.zeros_like(render_truth(dataset))


# Bright images over the grid, by what they do at held-out points.
PLANTED = {
    "truth": render_truth,
    "two memories": plant_two_memories,
    "fading": plant_fading,
    "blank": plant_blank,
    "interpolated": plant_interpolated,
}


def look_up(dataset, images: np.ndarray) -> Callable:
    """Makes a function to the image of the nearest grid point."""
    import keras

    strides = np.cumprod([1, *dataset.space.shape[:0:-1]])[::-1]
    low = [factor.low for factor in dataset.space]
    step = [factor.step for factor in dataset.space]

    def call(factors):
        index = keras.ops.round((factors - low) / step)
        places = keras.ops.sum(index * strides.astype("f4"), axis=1)
        rows = keras.ops.cast(places, "int32")
        return keras.ops.take(images.astype("f4"), rows, axis=0)

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

        factors = keras.Input((len(dataset.space),), name="factors")
        table = keras.layers.Lambda(look_up(dataset, images), name="image")
        outputs = [table(factors)]
        for name, function in stages.items():
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
def make_turned(make_study) -> Callable:
    return functools.partial(make_study, base=ROTATION)
