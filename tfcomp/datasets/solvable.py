"""Combinations that training determines, and the share that it covers.

`tfcomp.datasets.certificate` defines "determined" (or certified). An absent
factor, as of a stripe, adds nothing, and an image of no factor is blank.

A determined sum of effects is a weighted sum of training images. With an
independent error of the same variance in each of these, its least squares
estimate has the variance a (A^T A)^+ a^T, in units of an image's, for
the one-hot rows A of training and the row a of the combination.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfcomp.datasets.certificate import (
    Certificate,
    certify,
    make_products,
    number_effects,
)
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import number_rows
from tfcomp.datasets.splits import choose_rows

MAX_ORDER = 3
# Training images that are compared with sums, and numbers of all of them.
MAX_EXPLAINED = 1024
MAX_NUMBERS = 2**24
MAX_COLUMNS = 600  # of designs whose decomposition takes a second
RANK = 1e-9  # relative to the largest singular value: less is rounding
OPEN = 1e-6  # of 1 less the leverage: below, the others know nothing
MAX_IMAGES = 4096  # of training and of the grid, whose pixels are compared
RENDERED = 64  # combinations at a time
RANGE_SHARE = 0.5  # of a pixel's range over the data: training covers it
CHANGE = 1 / 255  # pixels with a smaller range, or share of the largest
NUMBERS = ("certified", "missing_rank", "noise_mean", "noise_max")


def certify_dataset(
    dataset: Dataset, points: np.ndarray | None = None
) -> dict[int, Certificate | None]:
    """Certifies combinations at the orders 1 to 3, or up to F.

    Args:
        dataset: Its training examples are what determines.
        points: The combinations that are judged, factor values [n, F]; by
            default all that exist.
    """
    space = dataset.space
    if points is None:
        points = dataset.splits.all.factors
    train = _list_training(dataset)
    if (train < 0).any():
        # An image of no factor is blank.
        train = np.vstack([train, np.full(len(space), -1)])

    classes = space.to_index(points)
    orders = range(1, min(MAX_ORDER, len(space)) + 1)
    return {order: certify(train, classes, order) for order in orders}


def _list_training(dataset: Dataset) -> np.ndarray:
    """Lists distinct training combinations as classes, int [n, F]."""
    return np.unique(dataset.space.to_index(dataset.splits.train), axis=0)


def summarize_certificates(
    dataset: Dataset, certificates: Mapping[int, Certificate | None]
) -> dict[str, dict[str, float | None]]:
    """Makes the entry of `metrics.json` (docs/solvable.md), by order.

    `missing_rank` is the number of further images that certify all.
    """
    is_ood = dataset.splits.all.is_ood
    train = _list_training(dataset)
    classes = dataset.space.to_index(dataset.splits.all.factors)

    summary: dict[str, dict[str, float | None]] = {}
    for order, certificate in certificates.items():
        numbers: dict[str, float | None] = dict.fromkeys(NUMBERS)
        if certificate is not None:
            numbers["missing_rank"] = len(certificate.images)
            if is_ood.any():
                share = certificate.certified[is_ood].mean()
                numbers["certified"] = float(share)
            determined = classes[certificate.certified & is_ood]
            noise = None
            if len(determined):
                noise = measure_noise(train, determined, order)
            if noise is not None:
                numbers["noise_mean"] = float(noise.mean())
                numbers["noise_max"] = float(noise.max())
        summary[str(order)] = numbers
    return summary


def list_images(
    dataset: Dataset, certificate: Certificate | None
) -> list[dict[str, Any]]:
    """Returns the images to add: values or levels by factor."""
    if certificate is None:
        return []
    table = dataset.splits.all.factors[certificate.images]
    columns = dataset.space.name_values(table)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def mark_certified(dataset: Dataset, certificate: Certificate) -> np.ndarray:
    """Returns 1, 0 or NaN (not held out) for each point of the grid, [n]."""
    is_ood = dataset.splits.all.is_ood
    marks = np.where(is_ood, certificate.certified, np.nan)
    return dataset.select_points(marks)


def measure_noise(
    train: np.ndarray, points: np.ndarray, order: int
) -> np.ndarray | None:
    """Computes the variance of determined sums of effects.

    Args:
        train: Classes of distinct training combinations, int [t, F].
        points: Classes of determined combinations, int [n, F].
        order: The number of factors that interact.

    Returns:
        The variance in units of an image's, [n]; None for a large design.
    """
    table = np.concatenate([train, points])
    codes, num_columns = _number_few_effects(table, order)
    if num_columns > MAX_COLUMNS:
        return None

    train_codes, codes = np.split(codes, [len(train)])
    products = make_products(train_codes, num_columns)
    inverse = np.linalg.pinv(products, rcond=RANK, hermitian=True)
    inverse = np.pad(inverse, (0, 1))  # the place of absent effects, -1
    variance = np.zeros(len(points))
    for first, second in itertools.product(codes.T, repeat=2):
        variance += inverse[first, second]
    return variance


def _number_few_effects(
    table: np.ndarray, order: int
) -> tuple[np.ndarray, int]:
    """Numbers effects, unless even the groups of factors are too many."""
    num_groups = math.comb(table.shape[1], order)
    if num_groups > MAX_COLUMNS:
        return np.empty((len(table), 0), int), num_groups
    return number_effects(table, order)


def explain_training(dataset: Dataset) -> dict[str, float]:
    """Computes R^2 of training images from the others, by order from 1 to 3.

    The others are those of other combinations: several images of a
    combination are left out together.
    """
    index = dataset.space.to_index(dataset.splits.train)
    combinations, rows, numbers = np.unique(
        index, axis=0, return_index=True, return_inverse=True
    )
    limit = max(1, MAX_NUMBERS // math.prod(dataset.image_shape))
    sample = choose_rows(len(rows), min(MAX_EXPLAINED, limit))

    if dataset.draw_all is None:
        images = dataset.render_array(dataset.splits.train[rows[sample]])
        around = np.zeros(len(images))
    else:
        groups = [np.flatnonzero(numbers == number) for number in sample]
        share = max(1, limit // len(sample))
        images, around = _average_training(dataset, groups, share)

    explained: dict[str, float] = {}
    for order in range(1, min(MAX_ORDER, len(dataset.space)) + 1):
        r2 = explain_images(combinations[sample], images, order, around)
        if r2 is None:
            break
        explained[str(order)] = r2
    return explained


def _average_training(
    dataset: Dataset, groups: Sequence[np.ndarray], share: int
) -> tuple[np.ndarray, np.ndarray]:
    """Averages training images of combinations.

    Args:
        dataset: Has the training images.
        groups: Rows of the training table, an array for each combination.
        share: The largest number of images of a combination.

    Returns:
        Mean images [n, H, W, C], and the mean squared distance of the images
        from them, [n], a sum over pixels.
    """
    means, around = [], []
    for rows in groups:
        chosen = rows[choose_rows(len(rows), share)]
        images = dataset.render_training(chosen).astype(np.float64)
        mean = images.mean(axis=0)
        means.append(mean)
        around.append(np.square(images - mean).sum() / len(images))
    return np.stack(means), np.array(around)


def explain_images(
    train: np.ndarray,
    images: np.ndarray,
    order: int,
    around: np.ndarray | None = None,
) -> float | None:
    """Computes R^2 of images by least squares on the others' effects.

    Args:
        train: Classes of the factors of distinct combinations, int [n, F].
        images: Their images, or means of several, [n, ...].
        order: Number of factors that interact.
        around: Mean squared distance of several images from their mean, [n],
            a sum over pixels: a sum of effects does not explain it.

    Returns:
        None for a large design, or if the others leave most images open.
    """
    codes, num_columns = _number_few_effects(train, order)
    if num_columns > MAX_COLUMNS:
        return None

    design = np.zeros((len(train), num_columns + 1))
    design[np.arange(len(train))[:, None], codes] = 1
    design[:, -1] = 1  # a constant, in the place of absent effects
    basis, values, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, values > RANK * values.max(initial=0)]

    # An image's error from the others is its residual / (1 - leverage).
    left = 1 - np.sum(basis**2, axis=1)
    is_open = left > OPEN
    if 2 * is_open.sum() <= len(train):
        return None
    flat = images.reshape(len(images), -1).astype(np.float64)
    residuals = flat - basis @ (basis.T @ flat)
    errors = residuals[is_open] / left[is_open, None]
    deviations = (flat - flat.mean(axis=0))[is_open]

    error = np.sum(errors**2)
    spread = np.sum(deviations**2)
    if around is not None:
        error += around[is_open].sum()
        spread += around[is_open].sum()
    return float(1 - error / spread) if spread else None


def measure_coverage(dataset: Dataset) -> dict[str, float]:
    """Measures the shares that training covers, each 0 to 1.

    Returns:
        `combinations` of all existing ones; `values` of a factor, averaged
        over factors; `pixels` that change over the data and reach half of
        their range in training, measured on a random part of large data.
    """
    return {
        "combinations": _cover_combinations(dataset),
        "values": _cover_values(dataset),
        "pixels": _cover_pixels(dataset),
    }


def _cover_combinations(dataset: Dataset) -> float:
    space, splits = dataset.space, dataset.splits
    every = splits.all
    # Training has held-out combinations with --train_all.
    inside = splits.train[dataset.region.contains(splits.train)]
    rows = number_rows(space.to_index(np.concatenate([every.factors, inside])))
    rows, inside_rows = np.split(rows, [len(every)])
    is_trained = np.where(
        every.is_ood, np.isin(rows, inside_rows), ~every.is_test
    )
    return float(np.mean(is_trained))


def _cover_values(dataset: Dataset) -> float:
    index = dataset.space.to_index(dataset.splits.train)
    shares = []
    for column, factor in zip(index.T, dataset.space, strict=True):
        present = np.unique(column[column >= 0])
        shares.append(len(present) / factor.size)
    return float(np.mean(shares))


def _cover_pixels(dataset: Dataset) -> float:
    points = dataset.splits.all.factors
    share = max(1, MAX_IMAGES // len(points))  # images of a combination

    def render(rows: np.ndarray) -> np.ndarray:
        return dataset.render_all(points[rows], share * len(rows))[0]

    num_train = len(dataset.splits.train)
    train_low, train_high = _find_range(dataset.render_training, num_train)
    low, high = _find_range(render, len(points))
    whole = np.maximum(train_high, high) - np.minimum(train_low, low)
    varies = whole > CHANGE * min(1, whole.max())
    is_covered = train_high - train_low >= RANGE_SHARE * whole
    return float((varies & is_covered).sum() / max(varies.sum(), 1))


def _find_range(
    render: Callable[[np.ndarray], np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the smallest and largest value of each pixel.

    Args:
        render: From rows of a table to images [n, H, W, C].
        count: Number of rows of the table, a random part of which is drawn.

    Returns:
        Both values, [H, W, C] each.
    """
    rows = choose_rows(count, MAX_IMAGES)
    lows, highs = [], []
    for part in np.array_split(rows, -(-len(rows) // RENDERED)):
        images = render(part)
        lows.append(images.min(axis=0))
        highs.append(images.max(axis=0))
    return np.min(lows, axis=0), np.max(highs, axis=0)
