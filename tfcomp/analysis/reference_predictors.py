"""Images that need no network: what a decoder has to be better than.

mean_image   the mean training image, everywhere
additive     that image and an effect of every value of every factor, per
             pixel: least squares over training images, of all solutions
             the shortest (a value that they lack adds nothing)
nearest_id   a training image: of those with the fewest differing factors
             the one whose grid steps have the least sum, the first of
             several
"""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.features import single_threaded
from tfcomp.analysis.kernels import compute_offsets
from tfcomp.datasets.factors import FactorSpace

_BLOCK = 64  # points whose distances are held at a time


@single_threaded
def fit_effects(
    index: np.ndarray, sizes: Sequence[int], images: np.ndarray
) -> np.ndarray:
    """The mean image and the effects of all values.

    Of training points with grid indices [n, F] and images [n, ...]. Rows of
    `make_design` times the result, [1 + sum(sizes), pixels], are images.
    """
    flat = images.reshape(len(images), -1).astype(np.float64)
    mean = flat.mean(axis=0)
    design = make_design(index, sizes)[:, 1:]
    inverse = np.linalg.pinv(design.T @ design, hermitian=True)
    return np.vstack([mean, inverse @ (design.T @ (flat - mean))])


def make_design(index: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """A one for the mean and one for every value, [n, 1 + sum(sizes)]."""
    pairs = zip(sizes, index.T, strict=True)
    codes = [np.eye(size)[column] for size, column in pairs]
    return np.hstack([np.ones((len(index), 1)), *codes])


def find_nearest(
    index: np.ndarray, known: np.ndarray, space: FactorSpace
) -> np.ndarray:
    """Which of the known points [n, F] is nearest to each of others, [m].

    All points are grid indices.
    """
    starts = range(0, len(index), _BLOCK)
    blocks = [index[start : start + _BLOCK] for start in starts]
    found = [_measure_distances(b, known, space).argmin(axis=1) for b in blocks]
    return np.concatenate(found)


def _measure_distances(
    index: np.ndarray, known: np.ndarray, space: FactorSpace
) -> np.ndarray:
    """Of points from known ones, [m, n]: a differing factor is more than steps.

    Points share values, so that those are compared and not points.
    """
    distances = np.zeros((len(index), len(known)))
    for column, factor in enumerate(space):
        values, rows = np.unique(index[:, column], return_inverse=True)
        others = known[:, column, None]
        for number, value in enumerate(values):
            steps = compute_offsets(others, value, (factor,))[:, 0]
            distances[rows == number] += steps + sum(space.shape) * (steps > 0)
    return distances
