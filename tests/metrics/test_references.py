"""Distances to ID, and predictors without a network: slow definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.metrics.planted import make_grid
from tests.own_factors import TILES
from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    make_categories,
    make_pixel_space,
)
from tfcomp.metrics import references
from tfcomp.metrics.references import correlate_with_distance

INDEX = TILES.to_index(TILES.grid())


def test_additive_is_least_squares_over_values(rng) -> None:
    images = rng.random((len(INDEX), 6))
    known = rng.permutation(len(INDEX))[:200]
    shape = TILES.shape

    effects = references.fit_effects(INDEX[known], shape, images[known])
    sums = references.make_design(INDEX, shape) @ effects

    columns = [np.ones(len(INDEX))]
    for values, size in zip(INDEX.T, shape, strict=True):
        for value in range(size):
            columns.append(values == value)
    design = np.stack(columns, axis=1)
    weights, *_ = np.linalg.lstsq(design[known], images[known], rcond=None)
    assert_allclose(effects[0], images[known].mean(axis=0))
    assert_allclose(sums, design @ weights, atol=1e-9)


def test_a_value_that_training_lacks_adds_nothing(rng) -> None:
    lacks = INDEX[:, 3] != 2
    images = rng.random((lacks.sum(), 2, 3))

    effects = references.fit_effects(INDEX[lacks], TILES.shape, images)

    assert_allclose(effects[-1], 0, atol=1e-9)


def test_nearest_has_fewest_differing_factors(rng) -> None:
    rows = rng.permutation(len(INDEX))[:60]
    known = INDEX[np.sort(rows)]

    nearest = references.find_nearest(INDEX, known, TILES)

    period = TILES.shape[2]
    for point, row in zip(INDEX, nearest, strict=True):
        steps = np.abs(known - point)
        steps[:, 2] = np.minimum(steps[:, 2], period - steps[:, 2])
        steps[:, 3] = steps[:, 3] > 0
        num_others = np.count_nonzero(steps, axis=1)
        order = np.lexsort([steps.sum(axis=1), num_others])
        assert row == order[0]


def measure_slowly(is_ood: np.ndarray, space: FactorSpace) -> np.ndarray:
    """Chessboard distance to the nearest ID point, a point at a time."""
    grid = make_grid(*space.shape)
    distances = []
    for point in grid:
        steps = np.abs(grid[~is_ood] - point)  # [n_id, F]
        for column, factor in zip(steps.T, space, strict=True):
            if factor.periodic:
                column[:] = np.minimum(column, factor.size - column)
            if factor.categorical:
                column[:] = column > 0
        distances.append(steps.max(axis=1).min())
    return np.array(distances)


def make_angle(size: int) -> Factor:
    return Factor("angle", size, 0.0, 360.0, periodic=True)


X = Factor("x", 5, 0.0, 4.0)
DIGIT = make_categories("digit", [0, 4])
LETTERS = [make_categories(name, [0, 1, 2]) for name in "ab"]
SPACES = {
    "pixels": make_pixel_space(6),
    "angle": FactorSpace((make_angle(12),)),
    "digits": FactorSpace((make_angle(7), DIGIT)),
    "angle and x": FactorSpace((make_angle(5), X)),
    "tiles": TILES,
    "names": FactorSpace(tuple(LETTERS)),
}


@pytest.mark.parametrize("share", [0.2, 0.95])
@pytest.mark.parametrize("name", SPACES)
def test_distance_against_all_pairs(name, share, rng) -> None:
    space = SPACES[name]
    is_ood = rng.random(np.prod(space.shape)) < share
    is_ood[0] = False

    distance = references.compute_border_distance(is_ood, space)

    expected = measure_slowly(is_ood, space)
    assert_array_equal(distance, expected)


def test_correlation_of_planted_errors(rng) -> None:
    distance = np.array([0, 0, 1, 1, 2, 3])
    rising = np.array([9, 9, 0.1, 0.2, 0.5, 7])  # ID does not count
    many = rng.integers(1, 9, 4000)
    noise = rng.random(4000)

    assert correlate_with_distance(rising, distance) > 0.9
    assert correlate_with_distance(-rising, distance) < -0.9
    assert abs(correlate_with_distance(noise, many)) < 0.05


@pytest.mark.parametrize(
    "errors, distances",
    [
        ([1, 1, 1], [1, 2, 3]),
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2], [1, 2]),
        ([1, 2, np.nan], [1, 2, 3]),
        ([1, 2, 3], [np.inf] * 3),
    ],
)
def test_no_correlation(errors, distances) -> None:
    errors = np.array(errors)
    distances = np.array(distances)
    assert correlate_with_distance(errors, distances) is None
