"""Distance to ID, against a slow definition, and its rank correlation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tfcomp.analysis.border import compute_border_distance
from tfcomp.analysis.border import correlate_with_distance
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.factors import make_categories
from tfcomp.datasets.factors import make_pixel_space


def measure_slowly(is_ood: np.ndarray, space: FactorSpace) -> np.ndarray:
    """Chessboard distance to the nearest ID point, one pair at a time."""
    points = np.array(list(itertools.product(*map(range, space.shape))))
    distances = []
    for point, held_out in zip(points, is_ood, strict=True):
        best = 0.0 if not held_out else np.inf
        for other in points[~is_ood]:
            steps = []
            for i, factor in enumerate(space):
                step = abs(int(point[i]) - int(other[i]))
                if factor.periodic:
                    step = min(step, factor.size - step)
                if factor.categorical:
                    step = np.inf if step else 0
                steps.append(step)
            best = min(best, max(steps))
        distances.append(best)
    return np.array(distances)


@pytest.mark.parametrize("share", [0.2, 0.7, 0.95])
@pytest.mark.parametrize(
    "space",
    [
        make_pixel_space(6),
        FactorSpace((Factor("angle", 12, 0.0, 360.0, periodic=True),)),
        FactorSpace(
            (
                Factor("angle", 7, 0.0, 360.0, periodic=True),
                make_categories("digit", [0, 4]),
            )
        ),
        FactorSpace(
            (
                Factor("angle", 5, 0.0, 360.0, periodic=True),
                Factor("x", 5, 0.0, 4.0),
            )
        ),
    ],
    ids=["pixels", "angle", "digits", "angle and x"],
)
def test_distance_against_all_pairs(
    space: FactorSpace, share: float, rng: np.random.Generator
) -> None:
    is_ood = rng.random(np.prod(space.shape)) < share
    is_ood[0] = False
    np.testing.assert_array_equal(
        compute_border_distance(is_ood, space), measure_slowly(is_ood, space)
    )


def test_distance_in_a_square() -> None:
    space = make_pixel_space(7)
    grid = space.grid()
    is_ood = ((grid >= 2) & (grid <= 4)).all(axis=1)
    distance = compute_border_distance(is_ood, space).reshape(7, 7)
    assert distance[3, 3] == 2
    assert (distance[2:5, 2] == 1).all() and distance[0, 0] == 0


def test_correlation_of_planted_errors(rng: np.random.Generator) -> None:
    distance = np.array([0.0, 0.0, 1, 1, 2, 3])
    rising = np.array([9.0, 9.0, 0.1, 0.2, 0.5, 7.0])  # ID does not count
    assert correlate_with_distance(rising, distance) > 0.9
    assert correlate_with_distance(-rising, distance) < -0.9
    many = rng.integers(1, 9, 4000).astype(float)
    assert abs(correlate_with_distance(rng.random(4000), many)) < 0.05


@pytest.mark.parametrize(
    ("error", "distance"),
    [
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 2.0, np.nan], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [np.inf, np.inf, np.inf]),
    ],
)
def test_no_correlation_exists(error: list, distance: list) -> None:
    assert correlate_with_distance(np.array(error), np.array(distance)) is None
