"""Ranks of planted, noisy and dead stages."""

import numpy as np
import pytest

from tfcomp.analysis.features import (
    compute_effective_rank,
    compute_participation,
    compute_rows,
)

NUM_POINTS = 60
IS_OOD = np.arange(NUM_POINTS) % 3 == 0
ALL = np.ones(NUM_POINTS, bool)


def participate(stage: np.ndarray, chosen: np.ndarray) -> float | None:
    return compute_participation(compute_rows(stage, IS_OOD), chosen)


def make_planted(rng: np.random.Generator, rank: int, units: int) -> np.ndarray:
    """Points with `rank` equal eigenvalues and otherwise zeros."""
    scores = rng.normal(size=(NUM_POINTS, rank))
    scores, _ = np.linalg.qr(scores - scores.mean(axis=0))
    directions, _ = np.linalg.qr(rng.normal(size=(units, rank)))
    return scores @ directions.T + rng.normal(size=units)


@pytest.mark.parametrize("units", [9, 50, 300])
def test_planted_rank_is_found(units: int, rng: np.random.Generator) -> None:
    for rank in (1, 4):
        stage = make_planted(rng, rank, units)
        assert participate(stage, ALL) == pytest.approx(rank, abs=0.01)
        assert participate(stage, IS_OOD) <= rank + 1e-3


@pytest.mark.parametrize("units", [10, 30, 200])
def test_participation_equals_the_definition(
    units: int, rng: np.random.Generator
) -> None:
    stage = rng.normal(size=(NUM_POINTS, units)) * rng.uniform(size=units)
    for chosen in (ALL, IS_OOD, ~IS_OOD):
        weights = np.linalg.eigvalsh(np.cov(stage[chosen].T))
        expected = weights.sum() ** 2 / (weights**2).sum()
        found = participate(1e-3 * stage + 1, chosen)
        assert found == pytest.approx(expected, rel=1e-3)


def test_effective_rank_of_known_weights() -> None:
    weights = [[2.0, 2.0, 0.0], [5.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0] * 3]
    found = compute_effective_rank(np.array(weights))
    np.testing.assert_allclose(found, [2.0, 1.0, 3.0, 0.0])
    assert np.isnan(compute_effective_rank(np.array([1.0, np.nan])))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.3, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_rank(value: float) -> None:
    for units in (3, 100):
        assert participate(np.full((60, units), value), ALL) is None
