"""Distances to ID, and predictors without a network: slow definitions."""

import numpy as np
import pytest
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from sklearn.preprocessing import OneHotEncoder

from tests.metrics.planted import make_grid, make_noise
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


def test_additive_is_least_squares_over_values(rng):
    known = rng.permutation(len(INDEX))[:200]
    images = make_noise(200, 6)

    effects = references.fit_effects(INDEX[known], TILES.shape, images)
    sums = references.make_design(INDEX, TILES.shape) @ effects

    encoder = OneHotEncoder(sparse_output=False)
    design = encoder.fit_transform(INDEX)
    weights = np.linalg.pinv(design[known]) @ images
    assert_allclose(effects[0], images.mean(axis=0))
    assert_allclose(sums, design @ weights, atol=1e-9)


def test_a_value_that_training_lacks_adds_nothing():
    known = INDEX[INDEX[:, 3] != 2]
    images = make_noise(len(known), 2, 3)

    effects = references.fit_effects(known, TILES.shape, images)

    assert_allclose(effects[-1], 0, atol=1e-9)


def test_nearest_has_fewest_differing_factors(rng):
    rows = rng.permutation(len(INDEX))[:60]
    known = INDEX[np.sort(rows)]

    nearest = references.find_nearest(INDEX, known, TILES)

    for point, row in zip(INDEX, nearest, strict=True):
        steps = count_steps(known, point, TILES)
        num_others = np.count_nonzero(steps, axis=1)
        order = np.lexsort([steps.sum(axis=1), num_others])
        assert row == order[0]


def count_steps(points: Array, point: Array, space: FactorSpace) -> Array:
    """Grid steps of each factor from points [n, F] to a point, [n, F]."""
    steps = np.abs(points - point)
    for column, factor in enumerate(space):
        if factor.periodic:
            others = factor.size - steps[:, column]
            steps[:, column] = np.minimum(steps[:, column], others)
        if factor.categorical:
            steps[:, column] = steps[:, column] > 0
    return steps


def make_angle(size: int) -> Factor:
    return Factor("angle", size, 0.0, 360.0, periodic=True)


X = Factor("x", 5, 0.0, 4.0)
DIGIT = make_categories("digit", [0, 4])
A = make_categories("a", [0, 1, 2])
B = make_categories("b", [0, 1, 2])
SPACES = {
    "pixels": make_pixel_space(6),
    "angle": FactorSpace((make_angle(12),)),
    "digits": FactorSpace((make_angle(7), DIGIT)),
    "angle and x": FactorSpace((make_angle(5), X)),
    "tiles": TILES,
    "names": FactorSpace((A, B)),
}


@pytest.mark.parametrize("share", [0.2, 0.95])
@pytest.mark.parametrize("name", SPACES)
def test_distance_against_all_pairs(name, share, rng):
    space = SPACES[name]
    is_ood = rng.random(np.prod(space.shape)) < share
    is_ood[0] = False

    distance = references.compute_border_distance(is_ood, space)

    grid = make_grid(*space.shape)
    expected = []
    for point in grid:
        steps = count_steps(grid[~is_ood], point, space)
        of_chess = steps.max(axis=1)
        expected.append(of_chess.min())
    assert_array_equal(distance, expected)


def test_correlation_of_planted_errors(rng):
    distance = np.append([0, 0], np.arange(1, 9))
    rising = np.append([9, 9], distance[2:] ** 3)  # ID does not count
    many = rng.integers(1, 9, 4000)
    noise = rng.random(4000)

    assert correlate_with_distance(rising, distance) == approx(1)
    assert correlate_with_distance(-rising, distance) == approx(-1)
    assert abs(correlate_with_distance(noise, many)) < 0.05


NUMBERS = np.array([1.0, 2.0, 3.0])
EQUAL = np.ones(3)
BROKEN = np.array([1.0, 2.0, np.nan])


@pytest.mark.parametrize(
    "errors, distances",
    [
        (EQUAL, NUMBERS),
        (NUMBERS, EQUAL),
        (NUMBERS[:2], NUMBERS[:2]),
        (BROKEN, NUMBERS),
        (NUMBERS, np.inf * EQUAL),
    ],
)
def test_no_correlation(errors, distances):
    assert correlate_with_distance(errors, distances) is None
