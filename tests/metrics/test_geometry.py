"""Geometry scores on metric tensors whose answer is known."""

import itertools
import math

import numpy as np
import pytest

from tfcomp.metrics import geometry

ORTHOGONAL = np.diag([4.0, 9.0])[None]
COLLINEAR = np.ones((1, 2, 2))
# y is three times as long as x, in the same direction.
STRETCHED = np.array([[[1.0, 3.0], [3.0, 9.0]]])
HALF_DEAD = np.diag([4.0, 0.0])[None]
DEAD = np.zeros((1, 2, 2))
THREE = np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]])
LOG_FLOOR = np.log(geometry.FLOOR)


@pytest.mark.parametrize(
    ("g", "score", "cosine_score"),
    [
        (ORTHOGONAL, 1.0, 1.0),
        (COLLINEAR, 0.5, 0.0),
        (-COLLINEAR + 2 * np.eye(2), 0.5, 0.0),
        (STRETCHED, 0.7, 0.0),
        (HALF_DEAD, 0.5, 0.0),
        (DEAD, 0.5, 0.0),
        # Three factors: the mean over pairs.
        (THREE, 2.5 / 3, 2 / 3),
    ],
)
def test_factorization(
    g: np.ndarray, score: float, cosine_score: float
) -> None:
    assert geometry.compute_factorization(g) == pytest.approx([score])
    found = geometry.compute_cosine_factorization(g)
    assert found == pytest.approx([cosine_score], abs=1e-12)


def test_one_factor_has_no_pair() -> None:
    g = np.full((3, 1, 1), 2.0)
    assert np.isnan(geometry.compute_factorization(g)).all()
    assert np.isnan(geometry.compute_cosine_factorization(g)).all()
    assert math.isnan(geometry.compute_ratio_factorization(g))
    summary = geometry.summarize_geometry(g, np.zeros(3, bool))
    assert summary["factorization"] is None
    assert summary["log_volume_id"] == pytest.approx(0.5 * np.log(2))
    assert summary["log_volume_ood"] is None  # no point is held out


def test_ratio_is_of_means() -> None:
    g = np.concatenate([COLLINEAR, 9 * np.eye(2)[None], DEAD])
    # Published form: 1 - mean(1, 0, 0) / mean(2, 18, 0).
    assert geometry.compute_ratio_factorization(g) == pytest.approx(0.95)
    assert geometry.compute_factorization(g).mean() == pytest.approx(2 / 3)
    assert geometry.compute_ratio_factorization(DEAD) == 0.5


def test_log_volume_equals_log_of_singular_values() -> None:
    jacobian = np.random.default_rng(3).normal(size=(50, 20, 3))
    g = np.einsum("nui,nuj->nij", jacobian, jacobian)
    singular_values = np.linalg.svd(jacobian, compute_uv=False)
    found = geometry.compute_log_volume(g)
    np.testing.assert_allclose(found, np.log(singular_values).sum(axis=1))
    np.testing.assert_allclose(found, 0.5 * np.linalg.slogdet(g)[1])


@pytest.mark.parametrize(
    ("g", "expected"),
    [
        (DEAD, 2 * LOG_FLOOR),
        (HALF_DEAD, np.log(2) + LOG_FLOOR),
        # Its determinant underflows.
        (1e-10 * np.eye(40)[None], 40 * np.log(1e-5)),
    ],
    ids=["dead", "half dead", "small"],
)
def test_log_volume_of_small_metrics(g: np.ndarray, expected: float) -> None:
    assert geometry.compute_log_volume(g) == pytest.approx([expected])


def test_summary_keeps_id_and_ood_apart() -> None:
    g = np.concatenate([ORTHOGONAL, COLLINEAR, DEAD, ORTHOGONAL])
    summary = geometry.summarize_geometry(g, np.arange(4) == 3)
    expected_id = (np.log(6) + 0.5 * np.log(2) + 3 * LOG_FLOOR) / 3
    assert summary["factorization"] == pytest.approx(0.75)
    assert summary["cosine_factorization"] == pytest.approx(0.5)
    assert summary["log_volume_id"] == pytest.approx(expected_id)
    assert summary["log_volume_ood"] == pytest.approx(np.log(6))
    assert summary["dead_fraction"] == 0.25
    assert all(type(value) is float for value in summary.values())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("num_factors", [2, 3])
def test_a_diverged_model_is_null_not_perfect(
    bad: float, num_factors: int
) -> None:
    g = np.stack([np.diag([4.0, 9.0, 1.0][:num_factors])] * 2)
    g[0, 0, 1] = bad
    summary = geometry.summarize_geometry(g, np.array([False, True]))
    assert summary["factorization"] is None
    assert summary["log_volume_id"] is None
    assert summary["log_volume_ood"] == pytest.approx(np.log(6))


def slow_gradient(values: np.ndarray, shape: tuple[int, ...], axes) -> list:
    """Metric tensors of values [n, units] over a grid, point by point."""
    tensors, maps = [], values.reshape(*shape, -1)
    for point in itertools.product(*map(range, shape)):
        slopes = []
        for axis in axes:
            low, high = list(point), list(point)
            low[axis] = max(point[axis] - 1, 0)
            high[axis] = min(point[axis] + 1, shape[axis] - 1)
            after, before = maps[tuple(high)], maps[tuple(low)]
            slopes.append((after - before) / (high[axis] - low[axis]))
        tensors.append([[a @ b for b in slopes] for a in slopes])
    return tensors


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2)])
def test_gradient_equals_its_definition(axes: tuple[int, ...]) -> None:
    shape = (3, 2, 4)
    values = np.random.default_rng(3).normal(size=(24, 600))
    found = geometry.compute_gradient_metrics(values, shape, axes)
    np.testing.assert_allclose(found, slow_gradient(values, shape, axes))
