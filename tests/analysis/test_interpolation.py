"""Interpolation scores: planted interpolators, truth, edges of gaps."""

import numpy as np
import pytest

from tfcomp.analysis.interpolation import (
    compute_interpolation,
    find_edges,
    interpolate_edges,
    summarize_interpolation,
)

GAP = np.array([0, 0, 1, 1, 1, 0, 0, 0], bool)


@pytest.fixture
def truth(rng: np.random.Generator) -> np.ndarray:
    return rng.random((8, 5, 5, 1))


def test_edges_of_a_gap() -> None:
    rows, edges, fraction = find_edges(GAP)
    assert rows.tolist() == [2, 3, 4]
    assert edges.tolist() == [[1, 5]] * 3
    np.testing.assert_allclose(fraction, [0.25, 0.5, 0.75])


def test_gap_at_the_end_wraps_or_has_no_edge() -> None:
    at_end = np.roll(GAP, 4)  # held out: 0, 6, 7
    rows, edges, fraction = find_edges(at_end, periodic=True)
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


def test_blank_outputs_and_no_gap(truth: np.ndarray) -> None:
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
