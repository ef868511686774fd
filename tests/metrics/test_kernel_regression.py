"""Regression and interpolation: planted functions, refits, edges of gaps."""

import numpy as np
import pytest

from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.metrics import kernel_regression as kr
from tfcomp.metrics.interpolation import (
    compute_interpolation,
    find_edges,
    interpolate_edges,
    summarize_interpolation,
)

SIZE = 11
GRID = make_grid(SIZE, SIZE)
IS_OOD = hold_out(GRID, 4, 6)
BUMPS = make_bumps(GRID, SIZE)


def fit(
    kernel: str, factors: np.ndarray, outputs: np.ndarray, is_ood: np.ndarray
) -> kr.KernelFit:
    return kr.fit_kernels(factors, {"": outputs}, is_ood)[""][kernel]


def slow_kernel(kernel: str, a: np.ndarray, b: np.ndarray) -> float:
    t = (a - b) / [0.5, 2.0]
    if kernel == "radial":
        r = np.sqrt(3) * np.linalg.norm(t)
        return (1 + r) * np.exp(-r)
    combine = {"additive": np.mean, "product": np.prod}[kernel]
    return combine(np.exp(-(t**2) / 2))


@pytest.mark.parametrize("kernel", list(kr.KERNELS))
def test_kernels_equal_double_loops(kernel: str) -> None:
    rows, columns = GRID[::7], GRID[::5]
    found = kr.make_kernel(kernel, rows, columns, (0.5, 2.0))
    expected = [[slow_kernel(kernel, a, b) for b in columns] for a in rows]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("pixels", [3, 400])
def test_leave_one_out_equals_refits(
    pixels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    points, ridge = GRID[::5], 0.3
    targets = rng.normal(size=(len(points), pixels)) + 2
    monkeypatch.setattr(kr, "SCALES", (2.0,))
    monkeypatch.setattr(kr, "RIDGES", (ridge,))
    nothing = np.zeros(len(points), bool)
    found = fit("product", points, targets, nothing)
    steps = kr._convert_to_steps(points)
    gram = kr.make_kernel("product", steps, steps, [2.0, 2.0])
    # An intercept is a last row and column of ones: the weights sum to 0.
    system = np.pad(gram, (0, 1), constant_values=1.0)
    system[-1, -1] = -ridge
    known = np.pad(targets, [(0, 1), (0, 0)])
    error = 0.0
    for i in range(len(points)):
        kept = np.arange(len(system)) != i
        refit = system[np.ix_(kept, kept)] + ridge * np.eye(len(points))
        predicted = system[i, kept] @ np.linalg.solve(refit, known[kept])
        error += np.sum((predicted - targets[i]) ** 2)
    total = np.sum((targets - targets.mean(axis=0)) ** 2)
    assert found.r2_id == pytest.approx(1 - error / total)
    assert found.r2_ood is None


def test_a_planted_additive_function_is_recovered() -> None:
    """Arbitrary functions of x plus arbitrary functions of y."""
    of_x, of_y = np.random.default_rng(6).normal(size=(2, SIZE, 8))
    x, y = GRID.astype(int).T
    outputs = {"": 4 + of_x[x] + of_y[y], "broken": np.full(len(x), np.nan)}
    fits = kr.fit_kernels(GRID, outputs, IS_OOD)
    assert {fit.r2_ood for fit in fits["broken"].values()} == {None}
    fits = fits[""]
    assert fits["additive"].r2_ood > 0.999
    assert fits["additive"].r2_id > 0.999
    others = [fits[name].r2_ood for name in ("product", "radial")]
    assert max(others) < 0.7


def test_ood_outputs_and_units_change_nothing_but_the_score() -> None:
    outputs = BUMPS.copy()
    first = kr.fit_kernels(GRID, {"": outputs}, IS_OOD)[""]
    outputs[IS_OOD] = np.random.default_rng(0).normal(size=(9, SIZE, SIZE))
    scaled = GRID * [0.25, 90] + [-1, 30]
    second = kr.fit_kernels(scaled, {"": outputs}, IS_OOD)[""]
    for expected, found in zip(first.values(), second.values(), strict=True):
        assert (found.scales, found.ridge) == (expected.scales, expected.ridge)
        assert found.r2_id == pytest.approx(expected.r2_id)
        assert abs(found.r2_ood - expected.r2_ood) > 1e-3


@pytest.mark.parametrize(
    ("outputs", "is_ood"),
    [
        (np.zeros_like(BUMPS), IS_OOD),
        (np.full_like(BUMPS, 0.1), IS_OOD),
        (BUMPS, np.arange(len(GRID)) > 0),
    ],
    ids=["black", "gray", "one ID point"],
)
def test_nothing_to_explain_gives_none(
    outputs: np.ndarray, is_ood: np.ndarray
) -> None:
    found = fit("additive", GRID, outputs, is_ood)
    assert found.r2_id is None and found.r2_ood is None


# Interpolation

GAP = np.array([0, 0, 1, 1, 1, 0, 0, 0], bool)


@pytest.fixture
def truth(rng: np.random.Generator) -> np.ndarray:
    return rng.random((8, 5, 5, 1))


def test_edges_of_gaps_inside_and_at_the_end() -> None:
    rows, edges, fraction = find_edges(GAP)
    assert rows.tolist() == [2, 3, 4]
    assert edges.tolist() == [[1, 5]] * 3
    np.testing.assert_allclose(fraction, [0.25, 0.5, 0.75])
    at_end = np.roll(GAP, 4)  # held out: 0, 6, 7
    rows, edges, fraction = find_edges(at_end, cycle=len(at_end))
    assert rows.tolist() == [0, 6, 7]
    assert edges.tolist() == [[5, 1]] * 3
    np.testing.assert_allclose(fraction, [0.75, 0.25, 0.5])
    assert find_edges(at_end)[0].size == 0


def test_planted_interpolator(truth: np.ndarray) -> None:
    scores = compute_interpolation(interpolate_edges(truth, GAP), truth, GAP)
    np.testing.assert_allclose(scores.r2, 1)
    np.testing.assert_allclose(scores.linear_r2, 1)
    np.testing.assert_allclose(scores.weights[:, 1], [0.25, 0.5, 0.75])
    summary = summarize_interpolation(scores)
    assert summary["interpolation_r2"] == pytest.approx(1)
    assert summary["truth_r2"] < 0.95
    # Blank outputs, and a curve without a gap, have none.
    blank = compute_interpolation(np.zeros_like(truth), truth, GAP)
    assert summarize_interpolation(blank)["interpolation_r2"] is None
    scores = compute_interpolation(truth, truth, np.zeros(8, bool))
    assert scores.r2.shape == (0,) and scores.weights.shape == (0, 2)
    assert set(summarize_interpolation(scores).values()) == {None}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([0.25, 0.5, 0.75], 1.0),
        ([0, 0.5, 1], 0.0),  # copies of the nearest edge
        ([0, 0, 0], -6.0),  # of the first one
    ],
)
def test_weights_tell_a_blend_from_copies(
    truth: np.ndarray, after: list[float], expected: float
) -> None:
    """R^2 on the edges is 1 for all of them."""
    outputs = truth.copy()
    for row, weight in zip((2, 3, 4), after, strict=True):
        outputs[row] = (1 - weight) * truth[1] + weight * truth[5]
    found = summarize_interpolation(compute_interpolation(outputs, truth, GAP))
    assert found["interpolation_r2"] == pytest.approx(1)
    # By hand, in halves of a weight: of -1/4, 0, 1/4 about one half.
    errors = np.subtract(after, [0.25, 0.5, 0.75])
    by_hand = 1 - np.sum(errors**2) / (2 * 0.25**2)
    assert found["weight_r2"] == pytest.approx(by_hand)
    assert by_hand == pytest.approx(expected)
