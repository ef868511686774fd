"""Least squares on a training set: noise of determined sums, order of images.

A sum of effects that is determined is a weighted sum of the values of training
images. With an independent error of the same variance in each of these, the
least squares estimate has the variance a (A^T A)^+ a^T, in units of that of an
image, for the one-hot rows A of training and the row a of the combination.

Images are sums of such effects, pixel by pixel, up to the order at which least
squares predicts training images from the others.
"""

import itertools

import numpy as np

# Columns of designs whose decomposition takes a second.
MAX_COLUMNS = 600
# Relative to the largest singular value: less is rounding.
RANK = 1e-9
# Share of an image that the others leave open, below which they know nothing.
OPEN = 1e-6


def measure_noise(
    train: np.ndarray, points: np.ndarray, order: int
) -> np.ndarray | None:
    """Returns the variance of determined sums, [n], in units of an image's.

    Tables are classes, int [t, F] and [n, F], all of whose rows differ; an
    absent factor (-1) adds nothing. None for a large design.
    """
    from scipy import sparse

    codes, count = _number_effects(np.concatenate([train, points]), order)
    if count > MAX_COLUMNS:
        return None
    known, asked = codes[: len(train)], codes[len(train) :]
    rows, subsets = np.nonzero(known >= 0)
    ones = np.ones(len(rows)), (rows, known[rows, subsets])
    design = sparse.csr_array(ones, shape=(len(train), count))
    products = (design.T @ design).toarray()
    inverse = np.linalg.pinv(products, rcond=RANK, hermitian=True)
    inverse = np.pad(inverse, (0, 1))  # the place of absent effects, -1
    pairs = itertools.product(asked.T, repeat=2)
    return np.sum([inverse[a, b] for a, b in pairs], axis=0)


def explain_images(
    train: np.ndarray, images: np.ndarray, order: int
) -> float | None:
    """Returns R^2 of training images that are predicted from the others.

    By sums of effects of at most `order` factors, by least squares; classes
    are int [n, F], images [n, ...]. None for a large design, or if the others
    leave most images open.
    """
    codes, count = _number_effects(train, order)
    if count > MAX_COLUMNS:
        return None
    design = np.zeros((len(train), count + 1))
    design[np.arange(len(train))[:, None], codes] = 1
    design[:, -1] = 1  # a constant, in the place of absent effects
    basis, values, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, values > RANK * values.max(initial=0)]
    left = 1 - np.sum(basis**2, axis=1)
    is_open = left > OPEN
    if 2 * is_open.sum() <= len(train):
        return None
    flat = images.reshape(len(images), -1).astype(np.float64)
    errors = flat - basis @ (basis.T @ flat)
    errors = errors[is_open] / left[is_open, None]
    spread = np.sum((flat - flat.mean(axis=0))[is_open] ** 2)
    return float(1 - np.sum(errors**2) / spread) if spread else None


def _number_effects(table: np.ndarray, order: int) -> tuple[np.ndarray, int]:
    """Returns columns of the effects in each row [n, S], -1 where absent.

    Effects of `order` factors, and of fewer where some factor is absent.
    """
    factors = table.shape[1]
    least = 1 if (table < 0).any() else min(order, factors)
    columns, count = [], 0
    for size in range(least, min(order, factors) + 1):
        for subset in itertools.combinations(range(factors), size):
            part = table[:, subset]
            shape = part.max(axis=0, initial=0) + 1
            is_absent = (part < 0).any(axis=1)
            place = np.ravel_multi_index(np.maximum(part, 0).T, shape)
            _, number = np.unique(place, return_inverse=True)
            columns.append(np.where(is_absent, -1, number + count))
            count += int(number.max(initial=-1)) + 1
    return np.stack(columns, axis=1), count
