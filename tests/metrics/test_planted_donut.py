"""Numbers about images, on planted outputs (C4, C5, C21).

The outputs are what networks could draw at the held-out positions of the donut,
having learned true bumps of sigma 1 everywhere else.
"""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
from scipy.ndimage import gaussian_filter

from tests.metrics.planted import (
    hold_out,
    make_bumps,
    make_grid,
    make_space,
    superpose,
)
from tfcomp.metrics import kernels
from tfcomp.metrics.scores import count_own_peaks
from tfcomp.metrics.superposition import (
    SETS,
    compute_sharing,
    summarize_sharing,
)

SIZE = 28
SPACE, FULL_GRID = make_space(SIZE, SIZE), make_grid(SIZE, SIZE)
HOLE = hold_out(FULL_GRID, 6, 22)
# Every second held-out position is enough to tell, as on a chess board.
KEPT = ~HOLE | (FULL_GRID.sum(axis=1) % 2 == 0)
GRID, IS_OOD = FULL_GRID[KEPT], HOLE[KEPT]
KNOWN_GRID, POINTS = GRID[~IS_OOD], GRID[IS_OOD]
# To the nearest known position, which lies straight across.
DISTANCE = 9 - np.abs(POINTS - 14).max(axis=1)
BUMPS = make_bumps(GRID, SIZE)
KNOWN = BUMPS[~IS_OOD]
MEANS = superpose(BUMPS, GRID, IS_OOD, {0: 1.0, 1: 1.0})[IS_OOD]


def draw_each(draw: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.array([draw(point) for point in POINTS])


def draw_wide(width: float) -> np.ndarray:
    profiles = np.exp(-0.5 * ((np.arange(SIZE) - GRID[..., None]) / width) ** 2)
    return np.einsum("nj,ni->nij", profiles[:, 0], profiles[:, 1])


def sum_nearest(point: np.ndarray) -> np.ndarray:
    """The nearest memory with the same x, and the one with the same y."""
    offsets = np.abs(KNOWN_GRID - point)
    distance = offsets.sum(axis=1, keepdims=True)
    nearest = np.where(offsets == 0, distance, np.inf).argmin(axis=0)
    return KNOWN[nearest].sum(axis=0)


def copy_one(point: np.ndarray) -> np.ndarray:
    return KNOWN[np.linalg.norm(KNOWN_GRID - point, axis=1).argmin()]


def plant(name: str) -> np.ndarray:
    """Outputs at all points, [n, SIZE, SIZE]; a composer draws wide bumps."""
    if name.startswith("composer"):
        return draw_wide(float(name.split()[1]))
    rng, outputs = np.random.default_rng(0), BUMPS.copy()

    def weigh_sharing(point: np.ndarray) -> np.ndarray:
        sharing = KNOWN[(KNOWN_GRID == point).any(axis=1)]
        return np.tensordot(rng.random(len(sharing)), sharing, 1)

    outputs[IS_OOD] = {
        "means": lambda: MEANS,
        "blurred means": lambda: gaussian_filter(MEANS, (0, 1, 1)),
        "nearest of each": lambda: draw_each(sum_nearest),
        "random weights": lambda: draw_each(weigh_sharing),
        "nearest memory": lambda: draw_each(copy_one),
        "random memories": lambda: draw_each(
            lambda point: rng.choice(KNOWN, 22).sum(axis=0)
        ),
        "noise": lambda: rng.normal(size=MEANS.shape),
    }[name]()
    return outputs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("means", 1.0),
        ("nearest of each", 1.0),
        ("random weights", 1.0),
        ("blurred means", 0.93),
        ("nearest memory", None),
        ("random memories", None),
        ("noise", None),
        ("composer 1", None),
        ("composer 3", None),
    ],
)
def test_superposers_are_recognized(name: str, expected: float | None) -> None:
    outputs = plant(name)
    r2 = compute_sharing(GRID, outputs, IS_OOD, SPACE)
    numbers = summarize_sharing(r2, DISTANCE)
    shares = [
        np.mean(count_own_peaks(outputs[rows], "bright") > 1)
        for rows in (IS_OOD, ~IS_OOD)
    ]
    if expected:
        assert numbers["sharing_far_r2"] == pytest.approx(expected, abs=0.01)
        assert numbers["sharing_near_r2"] == pytest.approx(expected, abs=0.01)
        assert -0.3 < numbers["rival_far_r2"] < 0
        assert shares[0] > 0.9 and shares[1] == 0
    elif name == "nearest memory":  # shares one factor
        assert numbers["sharing_far_r2"] == pytest.approx(1)
        assert numbers["single_far_r2"] == pytest.approx(1)
    else:
        assert numbers["sharing_far_r2"] < 0.2


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("means", 0.2, 0.3),
        ("random weights", 0.2, 0.3),
        ("composer 1", -0.4, -0.3),
        ("composer 3", -0.15, -0.1),
        # Not of all that share a factor: no control of this number.
        ("nearest of each", -0.2, 0.0),
        ("noise", -0.8, -0.4),
    ],
)
def test_sums_of_stripes_have_an_additive_kernel(
    name: str, low: float, high: float
) -> None:
    gram = kernels.compute_cosine_gram(plant(name))
    numbers = kernels.summarize_best_alignment(gram, GRID, IS_OOD)
    additive = numbers["alignment_additive_best"]
    assert low < additive - numbers["alignment_radial_best"] < high
    if name.startswith("composer"):
        assert numbers["alignment_radial_best"] == pytest.approx(1, abs=1e-3)
        assert numbers["alignment_radial_width"] == float(name.split()[1])


# R^2 on memories that share a factor

SMALL_GRID = make_grid(14, 14)
SMALL_SPACE = make_space(14, 14)
SMALL_OOD = hold_out(SMALL_GRID, 4, 9)
SMALL_BUMPS = make_bumps(SMALL_GRID, 14)


def share(outputs: np.ndarray, centered: bool = False) -> dict:
    return compute_sharing(
        SMALL_GRID, outputs, SMALL_OOD, SMALL_SPACE, centered
    )


@pytest.mark.parametrize("centered", [False, True])
def test_scores_equal_their_definition(
    rng: np.random.Generator, centered: bool
) -> None:
    outputs = SMALL_BUMPS + 0.1 * rng.random(SMALL_BUMPS.shape)
    r2 = share(outputs, centered)
    flat = outputs.reshape(len(SMALL_GRID), -1)
    known = np.flatnonzero(~SMALL_OOD)
    row = 8  # x = 5, y = 6
    target = flat[SMALL_OOD][row]

    def explain(chosen: list[int]) -> float:
        # A constant of either sign, in two columns.
        gray = centered * np.outer([1, -1], np.ones(flat.shape[1]))
        columns = np.vstack([flat[chosen], gray]).T
        error = scipy.optimize.nnls(columns, target)[1] ** 2
        return 1 - error / (target.var() * target.size)

    same_x = [i for i in known if SMALL_GRID[i, 0] == 5]
    same_y = [i for i in known if SMALL_GRID[i, 1] == 6]
    clear = [i for i in known if (np.abs(SMALL_GRID[i] - [5, 6]) > 3).all()]
    clear.sort(key=lambda i: round(np.hypot(*(SMALL_GRID[i] - [5, 6])), 6))
    expected = {
        "sharing": explain(same_x + same_y),
        "rival": explain(clear[: len(same_x + same_y)]),
        "single": max(explain(same_x), explain(same_y)),
    }
    for name in SETS:
        assert r2[name][row] == pytest.approx(expected[name])


def test_what_has_no_score() -> None:
    outputs = SMALL_BUMPS.copy()
    blank, even, broken = np.flatnonzero(SMALL_OOD)[:3]
    outputs[blank], outputs[even], outputs[broken] = 0, 0.3, np.nan
    outputs[9 * 14] = np.inf  # x = 9, shared by six points
    lacks = np.zeros(len(SMALL_GRID), bool)
    lacks[[blank, even, broken]] = True
    lacks |= SMALL_GRID[:, 0] == 9
    r2 = share(outputs)
    np.testing.assert_array_equal(np.isnan(r2["sharing"]), lacks[SMALL_OOD])
    numbers = summarize_sharing(r2, np.zeros(SMALL_OOD.sum()))
    assert numbers["sharing_far_r2"] is None
    assert 0 < numbers["sharing_near_r2"] < 1
    # Of 6 x 6 points, none differs from the middle by more than 3 steps.
    grid, space = make_grid(6, 6), make_space(6, 6)
    few = compute_sharing(
        grid, make_bumps(grid, 6), hold_out(grid, 2, 3), space
    )
    assert np.isnan(few["rival"]).all() and np.isfinite(few["sharing"]).all()


def test_a_free_constant_explains_no_bump() -> None:
    found = share(SMALL_BUMPS + 0.1, True)
    inner = hold_out(SMALL_GRID[SMALL_OOD], 6, 7)
    assert found["sharing"][inner].max() < 0.5
    # No memory is of any use.
    even = np.where(SMALL_OOD[:, None, None], SMALL_BUMPS, 0.3)
    assert share(even, True)["sharing"] == pytest.approx(0)
