"""Regression and interpolation: planted functions, refits, edges of gaps."""

import numpy as np
import pytest
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx

from tests.metrics.planted import hold_out, make_bumps, make_grid, make_noise
from tfcomp.metrics import interpolation
from tfcomp.metrics.interpolation import (
    KernelFit,
    compute_interpolation,
    find_edges,
    fit_kernels,
    make_kernel,
    summarize_interpolation,
)

SIZE = 11
GRID = make_grid(SIZE, SIZE)
IS_OOD = hold_out(GRID, 4, 6)
BUMPS = make_bumps(GRID, SIZE)
FEW = make_grid(5, 5)
FEW_OOD = hold_out(FEW, 2, 3)


def fit(
    outputs: Array,
    factors: Array = GRID,
    is_ood: Array = IS_OOD,
) -> dict[str, KernelFit]:
    return fit_kernels(factors, {"outputs": outputs}, is_ood)["outputs"]


def compute_additive(steps: Array) -> float:
    return np.exp(-(steps**2) / 2).mean()


def compute_product(steps: Array) -> float:
    return np.exp(-(steps @ steps) / 2)


def compute_radial(steps: Array) -> float:
    distance = np.sqrt(3) * np.linalg.norm(steps)
    return (1 + distance) * np.exp(-distance)


@pytest.mark.parametrize(
    "kernel, define",
    [
        ("additive", compute_additive),
        ("product", compute_product),
        ("radial", compute_radial),
    ],
)
def test_kernels_equal_double_loops(kernel, define):
    scales = np.array([0.5, 2.0])
    rows = GRID[::7]
    columns = GRID[::5]

    values = make_kernel(kernel, rows, columns, scales)

    for (i, j), value in np.ndenumerate(values):
        steps = (rows[i] - columns[j]) / scales
        assert value == approx(define(steps))


@pytest.mark.parametrize("pixels", [3, 400])
def test_leave_one_out_equals_refits(pixels, monkeypatch):
    ridge = 0.3
    monkeypatch.setattr(interpolation, "SCALES", (2.0,))
    monkeypatch.setattr(interpolation, "RIDGES", (ridge,))
    targets = make_noise(25, pixels) + 2
    nothing = np.zeros(25, bool)

    estimate = fit(targets, FEW, nothing)["product"]

    # An intercept is a last row and column of ones: the weights sum to 0.
    gram = make_kernel("product", FEW, FEW, [2.0, 2.0])
    system = np.pad(gram, (0, 1), constant_values=1.0)
    system[-1, -1] = -ridge
    values = np.vstack([targets, np.zeros(pixels)])
    predictions = []
    for i in range(25):
        others = np.delete(np.arange(26), i)
        refit = system[np.ix_(others, others)] + ridge * np.eye(25)
        weights = np.linalg.solve(refit, values[others])
        predictions.append(system[i, others] @ weights)
    error = np.square(predictions - targets).sum()
    total = 25 * targets.var(axis=0).sum()
    assert estimate.r2_id == approx(1 - error / total)
    assert estimate.r2_ood is None


def test_a_planted_additive_function_is_recovered():
    """Arbitrary functions of x plus arbitrary functions of y."""
    of_x, of_y = make_noise(2, SIZE, 8, seed=6)
    x, y = GRID.astype(int).T
    outputs = 4 + of_x[x] + of_y[y]

    fits = fit(outputs)

    additive = fits["additive"]
    assert min(additive.r2_id, additive.r2_ood) > 0.999
    for kernel in ("product", "radial"):
        assert fits[kernel].r2_ood < 0.7


def test_ood_outputs_and_units_change_nothing_but_the_score():
    outputs = BUMPS.copy()
    outputs[IS_OOD] = make_noise(9, SIZE, SIZE)
    factors = GRID * [0.25, 90] + [-1, 30]

    fits = fit(BUMPS)
    changed = fit(outputs, factors)

    for kernel, estimate in fits.items():
        other = changed[kernel]
        assert other.scales == estimate.scales
        assert other.ridge == estimate.ridge
        assert other.r2_id == approx(estimate.r2_id)
        assert abs(other.r2_ood - estimate.r2_ood) > 1e-3


@pytest.mark.parametrize(
    "outputs, is_ood",
    [
        (np.zeros((25, 3)), FEW_OOD),
        (np.full((25, 3), 0.1), FEW_OOD),
        (np.full((25, 3), np.nan), FEW_OOD),
        (make_noise(25, 3), np.arange(25) > 0),
    ],
    ids=["black", "gray", "broken", "one ID point"],
)
def test_nothing_to_explain_gives_none(outputs, is_ood):
    fits = fit(outputs, FEW, is_ood)
    for estimate in fits.values():
        assert estimate.r2_id is None
        assert estimate.r2_ood is None


# Interpolation

GAP = np.isin(range(8), [2, 3, 4])
FRACTIONS = np.array([0.25, 0.5, 0.75])


@pytest.fixture
def truth(rng) -> Array:
    return rng.random((8, 5, 5, 1))


@pytest.mark.parametrize("cycle", [0, 8])
def test_edges_of_a_gap(cycle):
    rows, edges, fractions = find_edges(GAP, cycle=cycle)

    assert_array_equal(rows, [2, 3, 4])
    assert_array_equal(edges, [[1, 5]] * 3)
    assert_allclose(fractions, FRACTIONS)


def test_edges_of_a_gap_across_the_end():
    gap = np.roll(GAP, 4)

    rows, edges, fractions = find_edges(gap, cycle=8)
    open_rows, *_ = find_edges(gap)

    assert_array_equal(rows, [0, 6, 7])
    assert_array_equal(edges, [[5, 1]] * 3)
    assert_allclose(fractions, [0.75, 0.25, 0.5])
    assert not len(open_rows)  # an open curve has no gap at its end


@pytest.mark.parametrize(
    "weights, expected",
    [
        (FRACTIONS, 1.0),
        ([0, 0.5, 1], 0.0),  # copies of the nearest edge
        ([0, 0, 0], -6.0),  # of the first one
    ],
)
def test_weights_tell_a_blend_from_copies(truth, weights, expected):
    """R^2 on the edges is 1 for all of them."""
    outputs = truth.copy()
    first = truth[1]
    last = truth[5]
    for row, weight in enumerate(weights, 2):
        outputs[row] = first + weight * (last - first)

    scores = compute_interpolation(outputs, truth, GAP)
    summary = summarize_interpolation(scores)

    assert_allclose(scores.weights[:, 1], weights, atol=1e-9)
    assert_allclose(scores.r2, 1)
    assert summary["interpolation_r2"] == approx(1)
    assert summary["truth_r2"] < 0.95
    # In halves of a weight: of -1/4, 0, 1/4 about one half.
    assert summary["weight_r2"] == approx(expected)


def test_no_interpolation(truth):
    """Of blank outputs, and of a curve without a gap."""
    nothing = np.zeros(8, bool)

    blank = compute_interpolation(0 * truth, truth, GAP)
    closed = compute_interpolation(truth, truth, nothing)

    summary = summarize_interpolation(blank)
    assert summary["interpolation_r2"] is None
    assert closed.weights.shape == (0, 2)
    summary = summarize_interpolation(closed)
    assert set(summary.values()) == {None}
