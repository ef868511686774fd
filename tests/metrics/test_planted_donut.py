"""Numbers about images, on planted outputs (C4, C5, C21).

The outputs are what networks could draw at the held-out positions of the donut,
having learned true bumps of sigma 1 everywhere else.
"""

import numpy as np
import pytest
import scipy.optimize
from pytest import approx
from scipy.ndimage import gaussian_filter

from tests.metrics import planted
from tfcomp.metrics import kernels
from tfcomp.metrics.scores import count_own_peaks
from tfcomp.metrics.superposition import (
    SETS,
    compute_sharing,
    find_faint,
    summarize_sharing,
)

SIZE = 28
SPACE = planted.make_space(SIZE, SIZE)
FULL_GRID = planted.make_grid(SIZE, SIZE)
HOLE = planted.hold_out(FULL_GRID, 6, 22)
# Every second held-out position is enough to tell, as on a chess board.
KEPT = ~HOLE | (FULL_GRID.sum(axis=1) % 2 == 0)
GRID = FULL_GRID[KEPT]
IS_OOD = HOLE[KEPT]
KNOWN_GRID = GRID[~IS_OOD]
POINTS = GRID[IS_OOD]
# To the nearest known position, which lies straight across.
DISTANCE = 9 - np.abs(POINTS - 14).max(axis=1)
BUMPS = planted.make_bumps(GRID, SIZE)
KNOWN = BUMPS[~IS_OOD]


def plant_means() -> np.ndarray:
    weights = {
        0: 1.0,
        1: 1.0,
    }
    return planted.superpose(BUMPS, GRID, IS_OOD, weights)[IS_OOD]


def plant_blurred_means() -> np.ndarray:
    return gaussian_filter(plant_means(), (0, 1, 1))


def plant_nearest_of_each() -> np.ndarray:
    """The nearest memory with the same x, and the one with the same y."""
    images = []
    for point in POINTS:
        offsets = np.abs(KNOWN_GRID - point)
        distance = offsets.sum(axis=1, keepdims=True)
        nearest = np.where(offsets == 0, distance, np.inf).argmin(axis=0)
        images.append(KNOWN[nearest].sum(axis=0))
    return np.array(images)


def plant_random_weights() -> np.ndarray:
    rng = np.random.default_rng(0)
    images = []
    for point in POINTS:
        sharing = KNOWN[(KNOWN_GRID == point).any(axis=1)]
        images.append(np.tensordot(rng.random(len(sharing)), sharing, 1))
    return np.array(images)


def plant_nearest_memory() -> np.ndarray:
    distances = np.linalg.norm(POINTS[:, None] - KNOWN_GRID, axis=2)
    return KNOWN[distances.argmin(axis=1)]


def plant_random_memories() -> np.ndarray:
    rows = np.random.default_rng(0).integers(len(KNOWN), size=(len(POINTS), 22))
    return np.array([KNOWN[memories].sum(axis=0) for memories in rows])


def plant_noise() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(POINTS), SIZE, SIZE))


def fill(images: np.ndarray) -> np.ndarray:
    """Outputs at all points, [n, SIZE, SIZE]."""
    outputs = BUMPS.copy()
    outputs[IS_OOD] = images
    return outputs


@pytest.mark.parametrize(
    "plant, expected",
    [
        (plant_means, 1.0),
        (plant_nearest_of_each, 1.0),
        (plant_random_weights, 1.0),
        (plant_blurred_means, 0.93),
    ],
)
def test_superposers_are_recognized(plant, expected) -> None:
    numbers = share(fill(plant()))
    near = approx(expected, abs=0.02)

    assert numbers["sharing_far_r2_centered"] == near
    assert numbers["sharing_near_r2_centered"] == near
    assert numbers["rival_far_r2_centered"] < 0.05
    assert np.mean(count_own_peaks(plant(), "bright") > 1) > 0.9


@pytest.mark.parametrize("plant", [plant_random_memories, plant_noise])
def test_other_outputs_are_no_superpositions(plant) -> None:
    assert share(fill(plant()))["sharing_far_r2_centered"] < 0.25


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_composers_are_no_superposers(sigma) -> None:
    outputs = planted.make_bumps(GRID, SIZE, sigma)
    assert share(outputs)["sharing_far_r2_centered"] < 0.25
    assert np.mean(count_own_peaks(outputs, "bright") > 1) == 0


def test_a_copy_of_one_memory_shares_one_factor() -> None:
    numbers = share(fill(plant_nearest_memory()))
    assert numbers["sharing_far_r2_centered"] == approx(1)
    assert numbers["single_far_r2_centered"] == approx(1)


def share(outputs: np.ndarray) -> dict:
    r2 = compute_sharing(GRID, outputs, IS_OOD, SPACE)
    return summarize_sharing(r2, DISTANCE, find_faint(outputs, IS_OOD))


@pytest.mark.parametrize(
    "plant, low, high",
    [
        (plant_means, 0.2, 0.3),
        (plant_random_weights, 0.2, 0.3),
        # Not of all that share a factor: no control of this number.
        (plant_nearest_of_each, -0.2, 0.0),
        (plant_noise, -0.8, -0.4),
    ],
)
def test_sums_of_stripes_have_an_additive_kernel(plant, low, high) -> None:
    gram = kernels.compute_cosine_gram(fill(plant()))

    numbers = kernels.summarize_best_alignment(gram, GRID, IS_OOD)

    additive = numbers["alignment_additive_best"]
    assert low < additive - numbers["alignment_radial_best"] < high


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_composers_have_a_radial_kernel(sigma) -> None:
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


def share_small(outputs: np.ndarray) -> dict[str, np.ndarray]:
    return compute_sharing(SMALL_GRID, outputs, SMALL_OOD, SMALL_SPACE)


def test_scores_equal_their_definition(rng) -> None:
    outputs = SMALL_BUMPS + 0.1 * rng.random(SMALL_BUMPS.shape)
    row = 8  # x = 5, y = 6

    r2 = share_small(outputs)

    flat = outputs.reshape(len(SMALL_GRID), -1)
    target = flat[SMALL_OOD][row]
    # A constant of either sign, in two rows.
    gray = np.outer([1, -1], np.ones(len(target)))

    def explain(rows: np.ndarray) -> float:
        columns = np.vstack([flat[rows], gray]).T
        error = scipy.optimize.nnls(columns, target)[1] ** 2
        return 1 - error / (target.var() * target.size)

    steps = np.abs(SMALL_GRID - [5, 6])
    same_x, same_y = ~SMALL_OOD & (steps == 0).T
    sharing = same_x | same_y
    distance = np.linalg.norm(steps, axis=1).round(6)
    is_clear = ~SMALL_OOD & (steps > 3).all(axis=1)
    distance[~is_clear] = np.inf
    rival = np.argsort(distance, kind="stable")[: sharing.sum()]
    expected = {
        "sharing": explain(sharing),
        "rival": explain(rival),
        "single": max(explain(same_x), explain(same_y)),
    }
    assert {name: r2[name][row] for name in SETS} == approx(expected)


def test_what_has_no_score() -> None:
    outputs = SMALL_BUMPS.copy()
    blank, even, broken = np.flatnonzero(SMALL_OOD)[:3]
    outputs[blank] = 0
    outputs[even] = 0.3
    outputs[broken] = np.nan
    outputs[9 * 14] = np.inf  # x = 9, shared by six points
    lacks = SMALL_GRID[:, 0] == 9
    lacks[[blank, even, broken]] = True
    r2 = share_small(outputs)

    np.testing.assert_array_equal(np.isnan(r2["sharing"]), lacks[SMALL_OOD])

    nothing = np.zeros(SMALL_OOD.sum())
    numbers = summarize_sharing(r2, nothing, find_faint(outputs, SMALL_OOD))
    assert numbers["sharing_far_r2_centered"] is None
    assert 0 < numbers["sharing_near_r2_centered"] < 1


def test_small_grids_have_no_rival() -> None:
    """Of 6 x 6 points, none is clear of the middle in both factors."""
    grid = planted.make_grid(6, 6)
    r2 = compute_sharing(
        grid,
        planted.make_bumps(grid, 6),
        planted.hold_out(grid, 2, 3),
        planted.make_space(6, 6),
    )

    assert np.isnan(r2["rival"]).all()
    assert np.isfinite(r2["sharing"]).all()


def test_a_free_constant_explains_no_bump() -> None:
    inner = planted.hold_out(SMALL_GRID[SMALL_OOD], 6, 7)
    r2 = share_small(SMALL_BUMPS + 0.1)

    assert r2["sharing"][inner].max() < 0.5

    # No memory is of any use.
    even = np.where(SMALL_OOD[:, None, None], SMALL_BUMPS, 0.3)
    assert share_small(even)["sharing"] == approx(0)
