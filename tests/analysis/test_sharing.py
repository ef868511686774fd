"""R^2 on memories that share a factor: definition and degenerate inputs."""

import numpy as np
import pytest
import scipy.optimize

from tests.analysis.planted import (
    hold_out,
    make_bumps,
    make_grid,
    make_space,
    superpose,
)
from tfcomp.analysis.sharing import SETS, compute_sharing, summarize_sharing

SIZE = 14
GRID = make_grid(SIZE, SIZE)
SPACE = make_space(SIZE, SIZE)
IS_OOD = hold_out(GRID, 4, 9)
BUMPS = make_bumps(GRID, SIZE)


@pytest.mark.parametrize("centered", [False, True])
def test_scores_equal_their_definition(
    rng: np.random.Generator, centered: bool
) -> None:
    outputs = BUMPS + 0.1 * rng.random(BUMPS.shape)
    r2 = compute_sharing(GRID, outputs, IS_OOD, SPACE, centered=centered)
    flat, known = outputs.reshape(len(GRID), -1), np.flatnonzero(~IS_OOD)
    row = 8  # x = 5, y = 6
    target = flat[IS_OOD][row]

    def explain(chosen: list[int]) -> float:
        # A constant of either sign, in two columns.
        gray = centered * np.outer([1, -1], np.ones(flat.shape[1]))
        columns = np.vstack([flat[chosen], gray]).T
        error = scipy.optimize.nnls(columns, target)[1] ** 2
        return 1 - error / (target.var() * target.size)

    same_x = [i for i in known if GRID[i, 0] == 5]
    same_y = [i for i in known if GRID[i, 1] == 6]
    clear = [i for i in known if (np.abs(GRID[i] - [5, 6]) > 3).all()]
    clear.sort(key=lambda i: round(np.hypot(*(GRID[i] - [5, 6])), 6))
    expected = {
        "sharing": explain(same_x + same_y),
        "rival": explain(clear[: len(same_x + same_y)]),
        "single": max(explain(same_x), explain(same_y)),
    }
    for name in SETS:
        assert r2[name][row] == pytest.approx(expected[name])


def test_what_has_no_score() -> None:
    outputs = BUMPS.copy()
    blank, even, broken = np.flatnonzero(IS_OOD)[:3]
    outputs[blank], outputs[even], outputs[broken] = 0, 0.3, np.nan
    outputs[9 * SIZE] = np.inf  # x = 9, shared by six points
    lacks = np.zeros(len(GRID), bool)
    lacks[[blank, even, broken]] = True
    lacks |= GRID[:, 0] == 9
    r2 = compute_sharing(GRID, outputs, IS_OOD, SPACE)
    np.testing.assert_array_equal(np.isnan(r2["sharing"]), lacks[IS_OOD])
    numbers = summarize_sharing(r2, np.zeros(IS_OOD.sum()))
    assert numbers["sharing_far_r2"] is None
    assert 0 < numbers["sharing_near_r2"] < 1


@pytest.mark.parametrize("gray", [0.05, -0.02])
def test_a_free_constant_takes_an_even_gray(gray: float) -> None:
    """5 % of gray refutes a perfect superposition without the constant."""
    shares = {0: 1.0, 1: 1.0}
    outputs = superpose(BUMPS, GRID, IS_OOD, shares)
    outputs[IS_OOD] += gray
    plain = compute_sharing(GRID, outputs, IS_OOD, SPACE)["sharing"]
    found = compute_sharing(GRID, outputs, IS_OOD, SPACE, centered=True)
    assert plain.mean() < 0.97  # .77 and .96
    assert found["sharing"] == pytest.approx(np.ones(IS_OOD.sum()))
    assert found["rival"].max() < 0.01 and found["single"].max() < 0.5


def test_a_free_constant_explains_no_bump() -> None:
    found = compute_sharing(GRID, BUMPS + 0.1, IS_OOD, SPACE, centered=True)
    inner = hold_out(GRID[IS_OOD], 6, 7)
    assert found["sharing"][inner].max() < 0.5
    even = np.where(IS_OOD[:, None, None], BUMPS, 0.3)  # no memory of any use
    assert compute_sharing(GRID, even, IS_OOD, SPACE, centered=True)[
        "sharing"
    ] == pytest.approx(0)
