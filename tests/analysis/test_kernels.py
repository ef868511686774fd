"""Ideal kernels and alignment: planted kernels, and true bumps."""

import math

import numpy as np
import pytest

from tests.analysis.planted import hold_out, make_bumps, make_grid
from tfcomp.analysis import kernels
from tfcomp.analysis.gram import compute_cosine_gram

GRID = make_grid(28, 28)
IS_OOD = hold_out(GRID, 6, 22)
SOME = np.random.default_rng(0).permutation(GRID)[:60]


@pytest.mark.parametrize("sizes", [(5, 4), (3, 4, 2), (6,)])
def test_ideal_kernels_equal_double_loops(sizes: tuple[int, ...]) -> None:
    grid = make_grid(*sizes)
    agrees = np.array([[p == q for q in grid] for p in grid])  # [n, n, F]
    found = kernels.make_factorized_kernel(grid)
    np.testing.assert_allclose(found, agrees.mean(axis=2))
    found = kernels.make_conjunctive_kernel(grid)
    np.testing.assert_allclose(found, agrees.all(axis=2))
    assert (kernels.make_constant_kernel(grid) == 1).all()


def test_wide_conjunctive_kernel_is_the_cosine_of_bumps() -> None:
    inner = GRID[IS_OOD]
    cosines = compute_cosine_gram(make_bumps(inner, 28))
    kernel = kernels.make_conjunctive_kernel(inner, width=1.0)
    np.testing.assert_allclose(cosines, kernel, atol=1e-3)
    narrow = kernels.make_factorized_kernel(inner, width=1e-3)
    np.testing.assert_allclose(narrow, kernels.make_factorized_kernel(inner))


def test_true_bumps_resemble_both_ideal_kernels() -> None:
    """Published settings: cosines, centered, over OOD points only."""
    cosines = compute_cosine_gram(make_bumps(GRID, 28))
    scores = kernels.summarize_alignment(cosines, GRID, IS_OOD)
    assert scores["alignment_factorized"] == pytest.approx(0.41, abs=0.005)
    assert scores["alignment_conjunctive"] == pytest.approx(0.42, abs=0.005)
    assert scores["alignment_constant"] == 0
    scores = kernels.summarize_alignment(cosines, GRID, IS_OOD, width=1.0)
    assert scores["alignment_conjunctive"] > 0.999
    assert scores["alignment_factorized"] < 0.7


def slow_alignment(a: np.ndarray, b: np.ndarray) -> float:
    centering = np.eye(len(a)) - 1 / len(a)
    a, b = centering @ a @ centering, centering @ b @ centering
    product = sum(a[i, j] * b[i, j] for i, j in np.ndindex(a.shape))
    return product / np.sqrt((a**2).sum() * (b**2).sum())


def test_alignment_equals_its_definition(rng: np.random.Generator) -> None:
    first, second = rng.normal(size=(2, 7, 7))
    found = kernels.compute_alignment(first, second)
    assert found == pytest.approx(slow_alignment(first, second))


@pytest.mark.parametrize("name", ["factorized", "conjunctive"])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_planted_kernels_are_recognized(name: str, scale: float) -> None:
    planted = kernels.IDEAL_KERNELS[name](GRID)
    gram = scale * (3 * planted + 5)
    scores = kernels.summarize_alignment(gram, GRID, IS_OOD)
    assert scores[f"alignment_{name}"] == pytest.approx(1)
    assert max(scores, key=scores.get) == f"alignment_{name}"
    assert kernels.compute_alignment(-planted, planted) == pytest.approx(-1)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_degenerate_kernels_agree_with_nothing(
    value: float, rng: np.random.Generator
) -> None:
    kernel = kernels.make_factorized_kernel(SOME)
    constant = np.full((len(SOME), len(SOME)), value)
    assert kernels.compute_alignment(constant, kernel) == 0
    noise = 1 + 1e-7 * rng.normal(size=constant.shape)
    assert kernels.compute_alignment(value * noise, kernel) == 0
    by_row = value + np.repeat(rng.normal(size=(len(SOME), 1)), len(SOME), 1)
    assert kernels.compute_alignment(by_row, kernel) == 0


def test_values_that_are_not_finite_and_no_points_give_none() -> None:
    gram = kernels.make_factorized_kernel(GRID)
    nowhere = np.zeros(len(GRID), bool)
    scores = kernels.summarize_alignment(gram, GRID, nowhere)
    assert set(scores.values()) == {None}
    first = np.flatnonzero(IS_OOD)[0]
    gram[first, first] = np.nan
    scores = kernels.summarize_alignment(gram, GRID, IS_OOD)
    assert set(scores.values()) == {None}
    assert math.isnan(kernels.compute_alignment(gram, gram))
    scores = kernels.summarize_alignment(gram, GRID, ~IS_OOD)
    assert scores["alignment_factorized"] == pytest.approx(1)


def test_steps_do_not_depend_on_units() -> None:
    grid = make_grid(5, 4)
    scaled = grid * [0.25, 90] + [-1, 30]
    np.testing.assert_allclose(
        kernels.convert_to_steps(scaled), grid, atol=1e-6
    )
    lonely = kernels.convert_to_steps(np.full((3, 1), 7.0))
    np.testing.assert_array_equal(lonely, np.zeros((3, 1)))
