"""Sums of known outputs, against direct least squares over the pixels."""

import numpy as np
import pytest
import scipy.optimize

from tfcomp.analysis import spans


def explain(known: np.ndarray, target: np.ndarray) -> float:
    """R^2 by nonnegative least squares of all pixels."""
    error = scipy.optimize.nnls(known.T, target)[1] ** 2
    return 1 - error / (target @ target)


def test_spans_are_those_of_direct_least_squares(
    rng: np.random.Generator,
) -> None:
    # Twice the same output, a blank one, and many more pixels than outputs.
    known = rng.random((12, 300))
    known[3], known[5] = known[8], 0.0
    found, rows = spans.Spans(known), np.array([0, 3, 5, 8, 11])
    target = rng.random(300)
    expected = pytest.approx(explain(known[rows], target), abs=1e-12)
    assert found.span(rows)(target) == expected
    assert found.span(np.array([5]))(target) == 0.0
    assert np.isnan(found.span(rows)(np.full(300, np.inf)))


@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-5, 1e-6, 1e-9, 0.0])
def test_outputs_that_hardly_differ(
    rng: np.random.Generator, apart: float
) -> None:
    """On both sides of where inner products are as good as singular."""
    known = rng.random(200) + apart * rng.random((20, 200))
    target = rng.random(200) + known[0]
    found = spans.Spans(known).span(np.arange(20))(target)
    assert found == pytest.approx(explain(known, target), abs=1e-4)
