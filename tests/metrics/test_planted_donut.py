"""Numbers about images, on planted outputs (C4, C5, C21).

The outputs are what networks could draw at the held-out positions of the donut,
having learned true bumps of sigma 1 everywhere else.
"""

import numpy as np
import pytest
import scipy.optimize
from numpy import ndarray as Array
from numpy.testing import assert_array_equal
from numpy.typing import ArrayLike
from pytest import approx
from scipy.spatial.distance import cdist

from tests.metrics import planted
from tfcomp.metrics import kernels
from tfcomp.metrics.scores import count_own_peaks
from tfcomp.metrics.superposition import (
    compute_sharing,
    find_faint,
    summarize_sharing,
)

SIZE = 28
SPACE = planted.make_space(SIZE, SIZE)
FULL_GRID = planted.make_grid(SIZE, SIZE)
HOLE = planted.hold_out(FULL_GRID, 6, 22)
# Every fourth held-out position is enough to tell.
IS_TOLD = FULL_GRID.sum(axis=1) % 4 == 0
KEPT = ~HOLE | IS_TOLD
GRID = FULL_GRID[KEPT]
IS_OOD = HOLE[KEPT]
KNOWN_GRID = GRID[~IS_OOD]
POINTS = GRID[IS_OOD]
# To the nearest known position, which lies straight across.
DISTANCE = 9 - np.abs(POINTS - 14).max(axis=1)
BUMPS = planted.make_bumps(GRID, SIZE)
KNOWN = BUMPS[~IS_OOD]


def plant_means() -> Array:
    weights = {0: 1.0, 1: 1.0}
    return planted.superpose(BUMPS, GRID, IS_OOD, weights)


def plant_nearest_of_each() -> Array:
    """The nearest memory with the same x, and the one with the same y."""
    return planted.add_nearest(BUMPS, GRID, IS_OOD)


def plant_random_weights() -> Array:
    rng = np.random.default_rng(0)
    images = []
    for point in POINTS:
        shares = (KNOWN_GRID == point).any(axis=1)
        weights = rng.random(shares.sum())
        image = np.tensordot(weights, KNOWN[shares], 1)
        images.append(image)
    return fill(images)


def plant_nearest_memory() -> Array:
    distances = cdist(POINTS, KNOWN_GRID)
    nearest = distances.argmin(axis=1)
    return fill(KNOWN[nearest])


def plant_noise() -> Array:
    noise = planted.make_noise(len(POINTS), SIZE, SIZE)
    return fill(noise)


def fill(images: ArrayLike) -> Array:
    """Outputs at all points, [n, SIZE, SIZE], with these at held-out ones."""
    outputs = BUMPS.copy()
    outputs[IS_OOD] = images
    return outputs


def count_doubles(images: Array) -> float:
    """The share of images with several peaks."""
    counts = count_own_peaks(images[..., None], "bright")
    return np.mean(counts > 1)


@pytest.mark.parametrize(
    "plant",
    [plant_means, plant_nearest_of_each, plant_random_weights],
)
def test_superposers_are_recognized(plant):
    outputs = plant()

    numbers = share(outputs)

    assert numbers["sharing_far_r2_centered"] == approx(1, abs=0.02)
    assert numbers["sharing_near_r2_centered"] == approx(1, abs=0.02)
    assert numbers["rival_far_r2_centered"] < 0.05
    assert count_doubles(outputs[IS_OOD]) > 0.9


def test_noise_is_no_superposition():
    numbers = share(plant_noise())
    assert numbers["sharing_far_r2_centered"] < 0.25


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_composers_are_no_superposers(sigma):
    outputs = planted.make_bumps(GRID, SIZE, sigma)

    numbers = share(outputs)

    assert numbers["sharing_far_r2_centered"] < 0.25
    assert count_doubles(outputs) == 0


def test_a_copy_of_one_memory_shares_one_factor():
    numbers = share(plant_nearest_memory())
    assert numbers["sharing_far_r2_centered"] == approx(1)
    assert numbers["single_far_r2_centered"] == approx(1)


def share(outputs: Array) -> dict:
    r2 = compute_sharing(GRID, outputs, IS_OOD, SPACE)
    faint = find_faint(outputs, IS_OOD)
    return summarize_sharing(r2, DISTANCE, faint)


@pytest.mark.parametrize(
    "plant, low, high",
    [
        (plant_means, 0.2, 0.3),
        # Not of all that share a factor: no control of this number.
        (plant_nearest_of_each, -0.2, 0.0),
        (plant_noise, -0.8, -0.3),
    ],
)
def test_sums_of_stripes_have_an_additive_kernel(plant, low, high):
    gram = kernels.compute_cosine_gram(plant())

    numbers = kernels.summarize_best_alignment(gram, GRID, IS_OOD)

    additive = numbers["alignment_additive_best"]
    radial = numbers["alignment_radial_best"]
    assert low < additive - radial < high


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_composers_have_a_radial_kernel(sigma):
    outputs = planted.make_bumps(GRID, SIZE, sigma)
    gram = kernels.compute_cosine_gram(outputs)

    numbers = kernels.summarize_best_alignment(gram, GRID, IS_OOD)

    assert numbers["alignment_radial_best"] == approx(1, abs=1e-3)
    assert numbers["alignment_radial_width"] == sigma
    assert numbers["alignment_additive_best"] < 0.9


# R^2 on memories that share a factor

SMALL_GRID = planted.make_grid(14, 14)
SMALL_SPACE = planted.make_space(14, 14)
SMALL_OOD = planted.hold_out(SMALL_GRID, 4, 9)
SMALL_BUMPS = planted.make_bumps(SMALL_GRID, 14)


def share_small(outputs: Array) -> dict[str, Array]:
    return compute_sharing(
        SMALL_GRID,
        outputs,
        SMALL_OOD,
        SMALL_SPACE,
    )


def test_scores_equal_their_definition(rng):
    outputs = SMALL_BUMPS + 0.1 * rng.random((196, 14, 14))
    row = 8  # x = 5, y = 6

    r2 = share_small(outputs)

    flat = outputs.reshape(196, 196)
    target = flat[SMALL_OOD][row]
    gray = np.ones((1, 196))

    def explain(rows: Array) -> float:
        """With a constant of either sign."""
        columns = np.concatenate([flat[rows], gray, -gray])
        _, error = scipy.optimize.nnls(columns.T, target)
        return 1 - error**2 / 196 / target.var()

    steps = np.abs(SMALL_GRID - [5, 6])
    same_x, same_y = ~SMALL_OOD & (steps == 0).T
    sharing = same_x | same_y
    is_clear = ~SMALL_OOD & (steps > 3).all(axis=1)
    distance = np.linalg.norm(steps, axis=1).round(6)
    distance[~is_clear] = np.inf
    order = np.argsort(distance, kind="stable")
    rivals = order[: sharing.sum()]
    assert r2["sharing"][row] == approx(explain(sharing))
    assert r2["rival"][row] == approx(explain(rivals))
    of_one = max(explain(same_x), explain(same_y))
    assert r2["single"][row] == approx(of_one)


def test_what_has_no_score():
    outputs = SMALL_BUMPS.copy()
    rows = np.flatnonzero(SMALL_OOD)
    blank, even, broken = rows[:3]
    outputs[blank] = 0
    outputs[even] = 0.3
    outputs[broken] = np.nan
    outputs[9 * 14] = np.inf  # x = 9, shared by six points
    faint = find_faint(outputs, SMALL_OOD)
    nowhere = np.zeros(SMALL_OOD.sum())

    r2 = share_small(outputs)
    numbers = summarize_sharing(r2, nowhere, faint)

    lacks = SMALL_GRID[:, 0] == 9
    lacks[[blank, even, broken]] = True
    is_lost = np.isnan(r2["sharing"])
    assert_array_equal(is_lost, lacks[SMALL_OOD])
    assert numbers["sharing_far_r2_centered"] is None
    assert 0 < numbers["sharing_near_r2_centered"] < 1


def test_small_grids_have_no_rival():
    """Of 6 x 6 points, none is clear of the middle in both factors."""
    grid = planted.make_grid(6, 6)
    space = planted.make_space(6, 6)
    bumps = planted.make_bumps(grid, 6)
    is_ood = planted.hold_out(grid, 2, 3)

    r2 = compute_sharing(grid, bumps, is_ood, space)

    assert np.isnan(r2["rival"]).all()
    assert np.isfinite(r2["sharing"]).all()
