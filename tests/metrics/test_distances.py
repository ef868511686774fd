"""Distances to ID, and predictors without a network: slow definitions."""

import numpy as np
import pytest

from tests.metrics.planted import make_grid
from tests.own_factors import TILES
from tfcomp.datasets import factors
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.metrics.distances import (
    compute_border_distance,
    correlate_with_distance,
    find_nearest,
    fit_effects,
    make_design,
)

INDEX = TILES.to_index(TILES.grid())


def test_additive_is_least_squares_over_values(
    rng: np.random.Generator,
) -> None:
    images = rng.random((len(INDEX), 2, 3))
    known = rng.permutation(len(INDEX))[:200]
    effects = fit_effects(INDEX[known], TILES.shape, images[known])
    np.testing.assert_allclose(effects[0], images[known].mean(axis=0).ravel())
    columns = [
        INDEX[:, i] == value
        for i, size in enumerate(TILES.shape)
        for value in range(size)
    ]
    design = np.stack([np.ones(len(INDEX)), *columns], axis=1)
    flat = images.reshape(len(images), -1)
    slow = design @ np.linalg.lstsq(design[known], flat[known], rcond=None)[0]
    found = make_design(INDEX, TILES.shape) @ effects
    np.testing.assert_allclose(found, slow, atol=1e-9)
    # A value that training lacks adds nothing to the others.
    lacks = INDEX[:, 3] != 2
    found = fit_effects(INDEX[lacks], TILES.shape, images[lacks])
    np.testing.assert_allclose(found[-1], 0, atol=1e-9)


def test_nearest_has_fewest_differing_factors(rng: np.random.Generator) -> None:
    known = INDEX[np.sort(rng.permutation(len(INDEX))[:60])]
    found = find_nearest(INDEX, known, TILES)
    for point, row in zip(INDEX, found, strict=True):
        steps = np.abs(known - point)
        steps[:, 2] = np.minimum(steps[:, 2], TILES.shape[2] - steps[:, 2])
        steps[:, 3] = steps[:, 3] > 0
        keys = [(np.count_nonzero(s), s.sum(), i) for i, s in enumerate(steps)]
        assert row == min(keys)[2]


def measure_slowly(is_ood: np.ndarray, space: FactorSpace) -> np.ndarray:
    """Chessboard distance to the nearest ID point, a point at a time."""
    grid = make_grid(*space.shape)
    periodic = [factor.periodic for factor in space]
    categorical = [factor.categorical for factor in space]
    distances = []
    for point in grid:
        steps = np.abs(grid[~is_ood] - point)  # [n_id, F]
        around = np.where(periodic, space.shape - steps, np.inf)
        steps = np.minimum(steps, around)
        steps[categorical & (steps > 0)] = 1
        distances.append(steps.max(axis=1).min())
    return np.array(distances)


def make_angle(size: int) -> Factor:
    return Factor("angle", size, 0.0, 360.0, periodic=True)


@pytest.mark.parametrize("share", [0.2, 0.95])
@pytest.mark.parametrize(
    "space",
    [
        factors.make_pixel_space(6),
        FactorSpace((make_angle(12),)),
        FactorSpace((make_angle(7), factors.make_categories("digit", [0, 4]))),
        FactorSpace((make_angle(5), Factor("x", 5, 0.0, 4.0))),
        TILES,
        FactorSpace(tuple(factors.make_categories(n, [0, 1, 2]) for n in "ab")),
    ],
    ids=["pixels", "angle", "digits", "angle and x", "tiles", "names"],
)
def test_distance_against_all_pairs(
    space: FactorSpace, share: float, rng: np.random.Generator
) -> None:
    is_ood = rng.random(np.prod(space.shape)) < share
    is_ood[0] = False
    np.testing.assert_array_equal(
        compute_border_distance(is_ood, space), measure_slowly(is_ood, space)
    )


def test_correlation_of_planted_errors(rng: np.random.Generator) -> None:
    distance = np.array([0.0, 0.0, 1, 1, 2, 3])
    rising = np.array([9.0, 9.0, 0.1, 0.2, 0.5, 7.0])  # ID does not count
    assert correlate_with_distance(rising, distance) > 0.9
    assert correlate_with_distance(-rising, distance) < -0.9
    many = rng.integers(1, 9, 4000).astype(float)
    assert abs(correlate_with_distance(rng.random(4000), many)) < 0.05
    for errors, distances in (
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 2.0, np.nan], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [np.inf, np.inf, np.inf]),
    ):
        pair = np.array(errors), np.array(distances)
        assert correlate_with_distance(*pair) is None
