"""Predicts images without a network, as baselines for a decoder.

mean_image   the mean training image, everywhere
additive     that image and an effect of every value of every factor, per
             pixel: least squares over training images, of all solutions
             the shortest (a value that they lack adds nothing)
nearest_id   a training image: of those with the fewest differing factors
             the first one whose grid steps have the least sum
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
    """Fits the mean of images [n, ...] at grid indices [n, F], and effects.

    Returns [1 + sum(sizes), pixels]; rows of `make_design` times these are
    images.
    """
    flat = images.reshape(len(images), -1).astype(np.float64)
    mean = flat.mean(axis=0)
    design = make_design(index, sizes)[:, 1:]
    inverse = np.linalg.pinv(design.T @ design, hermitian=True)
    return np.vstack([mean, inverse @ (design.T @ (flat - mean))])


def make_design(index: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Returns ones for the mean and for values, [n, 1 + sum(sizes)]."""
    pairs = zip(sizes, index.T, strict=True)
    codes = [np.eye(size)[column] for size, column in pairs]
    return np.hstack([np.ones((len(index), 1)), *codes])


def find_nearest(
    index: np.ndarray, known: np.ndarray, space: FactorSpace
) -> np.ndarray:
    """Returns rows of the nearest known grid indices [n, F], for [m, F]."""
    nearest = []
    for start in range(0, len(index), _BLOCK):
        block = index[start : start + _BLOCK]
        distances = np.zeros((len(block), len(known)))
        for column, factor in enumerate(space):
            # Values are compared, not points: many points share them.
            values, rows = np.unique(block[:, column], return_inverse=True)
            others = known[:, column, None]
            for number, value in enumerate(values):
                steps = compute_offsets(others, value, (factor,))[:, 0]
                # A differing factor is more than all steps.
                steps += sum(space.shape) * (steps > 0)
                distances[rows == number] += steps
        nearest.append(distances.argmin(axis=1))
    return np.concatenate(nearest)
