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

from tfcomp.analysis.kernels import compute_offsets
from tfcomp.analysis.threads import single_threaded
from tfcomp.datasets.factors import FactorSpace


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
    nearest = np.empty(len(index), int)
    for row, point in enumerate(index):
        steps = compute_offsets(known, point, space)  # [n, F]
        differing = np.count_nonzero(steps, axis=1)
        distance = differing * sum(space.shape) + steps.sum(axis=1)
        nearest[row] = np.argmin(distance)
    return nearest
