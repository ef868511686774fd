"""Geometry scores on metric tensors whose answer is known."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pytest import approx

from tests.metrics.planted import make_bumps, make_grid, make_noise
from tfcomp.metrics import geometry

ORTHOGONAL = np.diag([4.0, 9.0])[None]
EQUAL = np.eye(2)[None]
COLLINEAR = np.ones((1, 2, 2))
# y is three times as long as x, in the same direction.
STRETCHED = np.outer([1.0, 3.0], [1.0, 3.0])[None]
HALF_DEAD = np.diag([4.0, 0.0])[None]
DEAD = np.zeros((1, 2, 2))
# The first two of three factors are collinear.
THREE = np.diag([0.0, 0.0, 4.0])[None]
THREE[:, :2, :2] = 1.0
TINY = 1e-10 * np.eye(40)[None]  # its determinant underflows
LOG_FLOOR = np.log(geometry.FLOOR)


def multiply(jacobians: np.ndarray) -> np.ndarray:
    """Metric tensors of Jacobians [n, units, F]."""
    return np.einsum("nui,nuj->nij", jacobians, jacobians)


@pytest.mark.parametrize(
    "g, score, cosine_score",
    [
        (ORTHOGONAL, 1.0, 1.0),
        (COLLINEAR, 0.5, 0.0),
        (2 * EQUAL - COLLINEAR, 0.5, 0.0),  # opposite
        (STRETCHED, 0.7, 0.0),
        (HALF_DEAD, 0.5, 0.0),
        (DEAD, 0.5, 0.0),
        # Three factors: the mean over pairs.
        (THREE, 2.5 / 3, 2 / 3),
    ],
)
def test_factorization(g, score, cosine_score):
    factorization = geometry.compute_factorization(g)
    cosine = geometry.compute_cosine_factorization(g)

    assert factorization == approx([score])
    assert cosine == approx([cosine_score], abs=1e-12)


def test_one_factor_has_no_pair():
    g = np.full((3, 1, 1), 2.0)
    is_ood = np.zeros(3, bool)

    ratio = geometry.compute_ratio_factorization(g)
    summary = geometry.summarize_geometry(g, is_ood)

    expected = {
        "factorization": None,
        "cosine_factorization": None,
        "log_volume_id": approx(0.5 * np.log(2)),
        "log_volume_ood": None,  # no point is held out
    }
    assert math.isnan(ratio)
    assert summary | expected == summary


def test_ratio_is_of_means():
    g = np.concatenate([COLLINEAR, 9 * EQUAL, DEAD])

    # Published form: 1 - mean(1, 0, 0) / mean(2, 18, 0).
    ratio = geometry.compute_ratio_factorization(g)
    scores = geometry.compute_factorization(g)

    assert ratio == approx(0.95)
    assert scores.mean() == approx(2 / 3)
    assert geometry.compute_ratio_factorization(DEAD) == 0.5


def test_the_worst_pair():
    """The mean does not see that, of ten factors, two move the same unit."""
    g = np.eye(10)[None]
    g[:, 8:, 8:] = 1.0

    mean = geometry.compute_factorization(g)

    assert mean == approx([1 - 0.5 / 45])
    assert geometry.compute_worst_pair(g) == 0


@pytest.mark.parametrize("units", [20, 2000])
def test_chance_of_random_jacobians(units, rng):
    jacobians = rng.normal(size=(400, units, 2))

    scores = geometry.compute_cosine_factorization(multiply(jacobians))

    chance = geometry.compute_chance(units)
    assert scores.mean() == approx(chance, abs=0.02)


def test_log_volume_equals_log_of_singular_values(rng):
    jacobians = rng.normal(size=(50, 20, 3))

    log_volume = geometry.compute_log_volume(multiply(jacobians))

    values = np.linalg.svd(jacobians, compute_uv=False)
    expected = np.log(values).sum(axis=1)
    assert_allclose(log_volume, expected)


@pytest.mark.parametrize(
    "g, expected",
    [
        (DEAD, 2 * LOG_FLOOR),
        (HALF_DEAD, np.log(2) + LOG_FLOOR),
        (TINY, 40 * np.log(1e-5)),
    ],
    ids=["dead", "half dead", "small"],
)
def test_log_volume_of_small_metrics(g, expected):
    assert geometry.compute_log_volume(g) == approx([expected])


def test_fading_does_not_change_the_volume_per_contrast():
    """A perfect bump at contrast .2 does not warp, whatever the biases."""
    grid = make_grid(7, 7) + 5
    bumps = make_bumps(grid, 17).reshape(49, 289)
    x, _ = grid.T
    contrast = np.where(x > 7, 0.2, 1.0)
    biases = 5 * make_noise(289)

    faded = contrast[:, None] * bumps + biases

    divided = geometry.divide_by_contrast(
        0.7 + 2 * np.log(contrast),
        activations=faded,
        num_factors=2,
    )
    dead = geometry.divide_by_contrast(
        np.full(49, 0.7),
        activations=0 * bumps,
        num_factors=2,
    )

    distance = faded - np.median(faded, axis=0)
    squares = np.mean(distance**2, axis=1)
    expected = 0.7 + np.log(contrast**2 / squares)
    assert_allclose(divided, expected)
    assert np.ptp(divided) < 0.2  # without: 3.2
    # A contrast of rounding counts as the floor.
    assert_allclose(dead, 0.7 - 2 * LOG_FLOOR)


def test_summary_keeps_id_and_ood_apart():
    g = np.concatenate([ORTHOGONAL, COLLINEAR, DEAD, ORTHOGONAL])
    is_ood = np.arange(4) == 3

    summary = geometry.summarize_geometry(g, is_ood)

    collinear = 0.5 * np.log(2) + LOG_FLOOR
    log_volumes = [np.log(6), collinear, 2 * LOG_FLOOR]
    expected = {
        "factorization": 0.75,
        "cosine_factorization": 0.5,
        "log_volume_id": np.mean(log_volumes),
        "log_volume_ood": np.log(6),
        "dead_fraction": 0.25,
    }
    assert summary == approx(expected)
    assert {type(value) for value in summary.values()} == {float}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "diagonal",
    [
        [4.0, 9.0],
        [4.0, 9.0, 1.0],
    ],
)
def test_a_diverged_model_is_null_not_perfect(bad, diagonal):
    metric = np.diag(diagonal)
    g = np.stack([metric, metric])
    g[0, 0, 1] = bad
    is_ood = np.array([False, True])

    summary = geometry.summarize_geometry(g, is_ood)

    assert summary["factorization"] is None
    assert summary["log_volume_id"] is None
    assert summary["log_volume_ood"] == approx(np.log(6))


@pytest.mark.parametrize(
    "axes",
    [
        (0, 1, 2),
        (0, 2),
    ],
)
def test_metrics_of_maps_are_of_their_gradient(axes):
    shape = (3, 2, 4)
    values = make_noise(24, 600)

    metrics = geometry.compute_gradient_metrics(values, shape, axes)

    maps = values.reshape(*shape, 600)
    slopes = []
    for axis in axes:
        slopes.append(np.gradient(maps, axis=axis))
    expected = np.einsum("ixyzu,jxyzu->xyzij", slopes, slopes)
    assert_allclose(metrics, expected.reshape(metrics.shape))
