"""Predictors without a network, against slow definitions."""

import numpy as np

from tests.own_factors import TILES
from tfcomp.analysis.reference_predictors import (
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


def test_additive_images_are_predicted_where_values_are_known() -> None:
    rng = np.random.default_rng(1)
    effects = [rng.random((size, 4)) for size in TILES.shape]
    images = sum(e[column] for e, column in zip(effects, INDEX.T, strict=True))
    is_id = ~((INDEX[:, 0] > 2) & (INDEX[:, 3] == 1))
    found = fit_effects(INDEX[is_id], TILES.shape, images[is_id])
    drawn = make_design(INDEX, TILES.shape) @ found
    np.testing.assert_allclose(drawn, images, atol=1e-9)
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
