"""Effective ranks of planted, noisy and dead stages."""

import numpy as np
import pytest

from tfcomp.analysis.effective_rank import (
    compute_effective_rank,
    compute_effective_ranks,
    compute_spectrum,
    summarize_spectrum,
)

NUM_POINTS = 60
IS_OOD = np.arange(NUM_POINTS) % 3 == 0
RANKS = ("participation_ratio", "entropy_rank", "num_components")


def make_planted(rng: np.random.Generator, rank: int, units: int) -> np.ndarray:
    """Points with `rank` equal eigenvalues and otherwise zeros."""
    scores = rng.normal(size=(NUM_POINTS, rank))
    scores, _ = np.linalg.qr(scores - scores.mean(axis=0))
    directions, _ = np.linalg.qr(rng.normal(size=(units, rank)))
    return scores @ directions.T + rng.normal(size=units)


@pytest.mark.parametrize("units", [9, 300])
@pytest.mark.parametrize("rank", [1, 4])
def test_planted_rank_is_found(
    rank: int, units: int, rng: np.random.Generator
) -> None:
    ranks = compute_effective_ranks(make_planted(rng, rank, units), IS_OOD)
    for name in RANKS:
        assert ranks["all"][name] == pytest.approx(rank, abs=0.01)
    counts = [subset["num_points"] for subset in ranks.values()]
    assert counts == [60, 40, 20]
    for subset in ("id", "ood"):
        assert ranks[subset]["num_components"] <= rank
        assert ranks[subset]["participation_ratio"] <= rank + 1e-3


def test_spectrum_equals_the_covariance(rng: np.random.Generator) -> None:
    for shape in [(20, 6), (6, 20)]:
        features = rng.normal(size=shape)
        covariance = np.cov(features.T, bias=True)
        expected = np.linalg.eigvalsh(covariance)[::-1][: min(shape)]
        found = compute_spectrum(features)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_subsets_have_spectra_of_their_own(rng: np.random.Generator) -> None:
    activations = rng.normal(size=(NUM_POINTS, 100)) * rng.uniform(size=100)
    ranks = compute_effective_ranks(activations, IS_OOD)
    spectrum = np.linalg.eigvalsh(np.cov(activations[IS_OOD].T, bias=True))
    shares = np.maximum(spectrum[::-1] / spectrum.sum(), 1e-300)
    found = ranks["ood"]
    slow = np.exp(-sum(p * np.log(p) for p in shares))
    assert found["entropy_rank"] == pytest.approx(slow, rel=1e-4)
    slow = 1 / sum(p**2 for p in shares)
    assert found["participation_ratio"] == pytest.approx(slow, rel=1e-4)
    slow = next(m for m in range(100) if sum(shares[:m]) >= 0.95)
    assert found["num_components"] == slow


@pytest.mark.parametrize(
    ("deviations", "count"),
    [([3.0, 0.6, 0.3], 1), ([3.0, 0.8, 0.3], 2), ([1.0] * 20, 19)],
)
def test_threshold_is_on_the_variance(
    deviations: list[float], count: int
) -> None:
    """Standard deviations of 3, 0.6, 0.3 have 0.952 of it in the first."""
    ranks = summarize_spectrum(np.square(deviations))
    assert ranks["num_components"] == count


def test_formulas() -> None:
    ranks = summarize_spectrum(np.array([2.0, 1.0, 1.0, 0.0]))
    assert ranks["participation_ratio"] == pytest.approx(16 / 6)
    # The larger one: entropy weighs small shares more.
    assert ranks["entropy_rank"] == pytest.approx(2**1.5)


def test_effective_rank_of_known_weights() -> None:
    weights = [[2.0, 2.0, 0.0], [5.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0] * 3]
    found = compute_effective_rank(np.array(weights))
    np.testing.assert_allclose(found, [2.0, 1.0, 3.0, 0.0])
    assert np.isnan(compute_effective_rank(np.array([1.0, np.nan])))


@pytest.mark.parametrize("units", [30, 2000])
def test_rotation_scale_and_shift_do_not_matter(
    units: int, rng: np.random.Generator
) -> None:
    activations = rng.normal(size=(NUM_POINTS, units)).astype(np.float32)
    if units == 30:
        moved = activations @ np.linalg.qr(rng.normal(size=(30, 30)))[0]
    else:
        moved = activations[:, rng.permutation(units)]
    expected = compute_effective_ranks(activations, IS_OOD)
    found = compute_effective_ranks(1e-3 * moved + 1, IS_OOD)
    for subset, ranks in expected.items():
        assert found[subset] == pytest.approx(ranks, rel=1e-3)


def test_noise_uses_nearly_all_dimensions(rng: np.random.Generator) -> None:
    wide = rng.normal(size=(NUM_POINTS, 20000)).astype(np.float32)
    ranks = compute_effective_ranks(wide, IS_OOD)
    for name in RANKS[:2]:
        assert ranks["all"][name] == pytest.approx(NUM_POINTS - 1, rel=0.01)
        assert ranks["ood"][name] == pytest.approx(19, rel=0.01)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("units", [3, 100])
@pytest.mark.parametrize("value", [0.0, 0.3, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_rank(
    value: float, units: int
) -> None:
    ranks = compute_effective_ranks(np.full((60, units), value), IS_OOD)
    for subset in ranks.values():
        assert [subset[name] for name in RANKS] == [None] * 3


@pytest.mark.parametrize("units", [3, 100])
def test_subset_that_does_not_move_has_no_rank(
    units: int, rng: np.random.Generator
) -> None:
    activations = rng.normal(size=(60, units)).astype(np.float32)
    activations[IS_OOD] = 0.7
    ranks = compute_effective_ranks(activations, IS_OOD)
    assert ranks["ood"]["participation_ratio"] is None
    assert ranks["id"]["participation_ratio"] is not None
    nothing = compute_effective_ranks(activations, np.zeros(60, bool))
    assert nothing["ood"]["entropy_rank"] is None
    assert nothing["ood"]["num_points"] == 0
