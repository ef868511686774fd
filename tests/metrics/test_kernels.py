"""Gram matrices and kernels against loops; planted ones."""

import math

import numpy as np
import pytest
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy.spatial import distance

from tests.metrics.planted import hold_out, make_bumps, make_grid, make_noise
from tfcomp.metrics import kernels

SMALL = make_grid(6, 7)
OUTPUTS = make_noise(12, 5, 6, 1)
BROKEN = pytest.mark.parametrize("value", [np.nan, np.inf])


def overlap(a: Array, b: Array) -> float:
    """The shared part of all pixels above one half."""
    return 1 - distance.jaccard(a > 0.5, b > 0.5)


def cosine(a: Array, b: Array) -> float:
    return 1 - distance.cosine(a, b)


GRAMS = {
    kernels.compute_cosine_gram: cosine,
    kernels.compute_distance_gram: distance.euclidean,
    kernels.compute_overlap_gram: overlap,
}


@pytest.mark.parametrize("compute", GRAMS)
def test_grams_equal_double_loops(compute):
    outputs = OUTPUTS.copy()

    gram = compute(outputs)

    flat = OUTPUTS.reshape(12, -1)
    expected = distance.cdist(flat, flat, GRAMS[compute])
    assert_allclose(gram, expected, atol=1e-6)
    assert_array_equal(outputs, OUTPUTS)


def test_distances_resolve_close_outputs_on_a_white_background():
    bright = np.zeros((2, 28, 28))
    bright[1, 4, 4] = 1e-5

    distances = kernels.compute_distance_gram(1000 - bright)

    assert distances[0, 1] == approx(1e-5, rel=1e-4)
    assert not np.diagonal(distances).any()


@pytest.mark.parametrize(
    "compute",
    [kernels.compute_cosine_gram, kernels.compute_overlap_gram],
)
def test_blank_outputs_resemble_nothing(compute):
    outputs = OUTPUTS.copy()
    outputs[2] = 0

    gram = compute(outputs)

    assert not gram[2].any()
    assert not gram.T[2].any()
    assert gram[0, 0] == approx(1)


@BROKEN
@pytest.mark.parametrize("compute", GRAMS)
def test_broken_outputs_are_nan_and_spoil_no_other(compute, value):
    outputs = OUTPUTS.copy()
    outputs[-1, 0, 0] = value

    gram = compute(outputs)

    rest = compute(outputs[:-1])
    expected = np.pad(rest, (0, 1), constant_values=np.nan)
    assert_allclose(gram, expected, atol=1e-6)


@pytest.mark.parametrize(
    "sizes",
    [
        (5, 4),
        (3, 4, 2),
        (6,),
    ],
)
def test_ideal_kernels_equal_double_loops(sizes):
    grid = make_grid(*sizes)
    agrees = grid[:, None] == grid  # [n, n, F]
    expected = {
        "factorized": agrees.mean(axis=2),
        "conjunctive": agrees.all(axis=2),
    }

    for name, values in expected.items():
        kernel = kernels.IDEAL_KERNELS[name](grid)
        assert_allclose(kernel, values)


def test_true_bumps_resemble_both_ideal_kernels():
    """Published settings: cosines, centered, over OOD points only."""
    grid = make_grid(28, 28)
    is_ood = hold_out(grid, 6, 22)
    bumps = make_bumps(grid, 28)
    gram = kernels.compute_cosine_gram(bumps)

    published = kernels.summarize_alignment(gram, grid, is_ood)
    wide = kernels.summarize_alignment(gram, grid, is_ood, width=1.0)

    expected = {
        "alignment_factorized": 0.41,
        "alignment_conjunctive": 0.42,
    }
    for name, alignment in expected.items():
        assert published[name] == approx(alignment, abs=0.005)
    assert wide["alignment_conjunctive"] > 0.999
    assert wide["alignment_factorized"] < 0.7


@pytest.mark.parametrize("scale", [1.0, -1e-9, 1e9])
def test_alignment_equals_its_definition(scale):
    first, second = make_noise(2, 7, 7)

    alignment = kernels.compute_alignment(scale * first, second)

    centering = np.eye(7) - 1 / 7
    a = centering @ first @ centering
    b = centering @ second @ centering
    expected = cosine(a.ravel(), b.ravel())
    assert alignment == approx(np.sign(scale) * expected)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_degenerate_kernels_agree_with_nothing(value):
    kernel = kernels.make_factorized_kernel(SMALL)
    constant = np.full((42, 42), value)
    rounding = 1e-7 * make_noise(42, 42)
    noisy = value * (1 + rounding)
    by_row = constant + make_noise(42, 1)

    for other in (constant, noisy, by_row):
        alignment = kernels.compute_alignment(other, kernel)
        assert alignment == 0


@pytest.mark.parametrize(
    "summarize",
    [kernels.summarize_alignment, kernels.summarize_best_alignment],
)
def test_values_that_are_not_finite_and_no_points_give_none(summarize):
    gram = kernels.make_factorized_kernel(SMALL)
    gram[0, 0] = np.nan
    alignment = kernels.compute_alignment(gram, gram)
    assert math.isnan(alignment)

    everywhere = np.arange(42)
    nowhere = np.zeros(42, bool)
    # Centered, all kernels of two points are equal up to a factor.
    pair = [5, 6]
    for rows in (everywhere, nowhere, pair):
        summary = summarize(gram, SMALL, rows)
        assert set(summary.values()) == {None}
    rest = kernels.summarize_alignment(gram, SMALL, everywhere[1:])
    assert rest["alignment_factorized"] == approx(1)
