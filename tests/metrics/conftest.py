"""Studies of planted models: known stages and outputs on a small grid."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.run_flags import parse_config

# A dark bump on 16 x 16 pixels, the middle held out.
BUMPS = ("--flagfile=smoke.flags", "--grid_size=16", "--region=square:3-12")
# A drawn digit at 90 angles, 160 to 200 degrees held out.
ROTATION = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=90",
)


def draw_truth(dataset) -> np.ndarray:
    sign = -1.0 if dataset.polarity == "dark" else 1.0
    truth = dataset.render_array(dataset.splits.grid)
    return sign * (truth - dataset.ground)


def draw_two_memories(dataset) -> np.ndarray:
    """True ID images; OOD, the nearest sharing x plus the nearest sharing y."""
    images, splits = draw_truth(dataset), dataset.splits
    known = images.copy()
    for i in np.flatnonzero(splits.is_ood):
        offsets = np.abs(splits.grid - splits.grid[i])
        distance = offsets.sum(axis=1, keepdims=True)
        shares = (offsets == 0) & splits.is_id[:, None]
        nearest = np.where(shares, distance, np.inf).argmin(axis=0)
        images[i] = known[nearest].sum(axis=0)  # one for x and one for y
    return images


def draw_fading(dataset) -> np.ndarray:
    from tfcomp.metrics.distances import compute_border_distance

    distance = compute_border_distance(dataset.splits.is_ood, dataset.space)
    weight = 1 - distance / (distance.max() + 1)
    return draw_truth(dataset) * weight[:, None, None, None]


def draw_interpolated(dataset) -> np.ndarray:
    """In the gap, the linear interpolation of the images at its edges."""
    from tfcomp.metrics.interpolation import interpolate_edges

    (factor,), is_ood = dataset.space, dataset.splits.is_ood
    return interpolate_edges(draw_truth(dataset), is_ood, factor.cycle)


# Bright images over the grid, by what they do at held-out points.
PLANTED = {
    "truth": draw_truth,
    "two memories": draw_two_memories,
    "fading": draw_fading,
    "blank": lambda dataset: np.zeros_like(draw_truth(dataset)),
    "interpolated": draw_interpolated,
}


@pytest.fixture(scope="session")
def make_study() -> Callable:
    """Builds a study from outputs, flags, and stages as functions."""
    import keras

    from tfcomp.datasets import make_dataset
    from tfcomp.metrics.run_analysis import RunAnalysis
    from tfcomp.models.loading import LoadedRun

    def look_up(dataset, images: np.ndarray) -> Callable:
        """Draws the image that a table has for the nearest grid point."""
        low, step, size = np.transpose(
            [(f.low, f.step, f.size) for f in dataset.space]
        ).astype("f4")
        strides = np.cumprod([1, *size[:0:-1]])[::-1].astype("f4")

        def call(factors):
            index = keras.ops.round((factors - low) / step)
            row = keras.ops.cast(keras.ops.sum(index * strides, 1), "int32")
            return keras.ops.take(images.astype("f4"), row, axis=0)

        return call

    def make(
        draw: str | Callable,
        *flags: str,
        base: tuple[str, ...] = BUMPS,
        **stages: Callable,
    ) -> RunAnalysis:
        """`draw` names `PLANTED` outputs, or makes some from a dataset."""
        draw = PLANTED.get(draw, draw)
        config = parse_config([*base, *flags])
        dataset = make_dataset(config)
        sign = -1.0 if dataset.polarity == "dark" else 1.0
        images = dataset.ground + sign * draw(dataset)
        factors = keras.Input((len(dataset.space),), name="factors")
        hidden = [
            keras.layers.Lambda(function, name=name)(factors)
            for name, function in stages.items()
        ]
        draw_table = look_up(dataset, images)
        image = keras.layers.Lambda(draw_table, name="image")(factors)
        # The stages hang on the image, or they would be no part of the model.
        used = keras.layers.Lambda(lambda parts: parts[0], name="last")
        model = keras.Model(factors, used([image, *hidden]))
        run = LoadedRun(Path("run"), config, dataset, model, {}, "")
        return RunAnalysis.of_run(run)

    return make


@pytest.fixture(scope="session")
def make_turned(make_study: Callable) -> Callable:
    return functools.partial(make_study, base=ROTATION)
