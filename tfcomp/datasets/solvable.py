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


def certify_dataset(
    dataset: Dataset, points: np.ndarray | None = None
) -> dict[int, Certificate | None]:
    """Returns certificates of points, by default all, by order from 1 to 3."""
    space = dataset.space
    every = dataset.splits.all.factors if points is None else points
    train, rows = _list_training(dataset), space.to_index(every)
    if (train < 0).any():  # nothing at all is known without an image
        train = np.vstack([train, np.full(len(space), -1)])
    orders = range(1, min(MAX_ORDER, len(space)) + 1)
    return {order: certify(train, rows, order) for order in orders}


def _list_training(dataset: Dataset) -> np.ndarray:
    """Returns distinct training combinations as classes, int [n, F]."""
    return np.unique(dataset.space.to_index(dataset.splits.train), axis=0)


def summarize_certificates(
    dataset: Dataset, certificates: Mapping[int, Certificate | None]
) -> dict[str, dict[str, float | None]]:
    """Returns the numbers of `metrics.json` (docs/solvable.md), by order.

    `missing_rank` is the number of further images that certify all.
    """
    is_ood = dataset.splits.all.is_ood
    train = _list_training(dataset)
    rows = dataset.space.to_index(dataset.splits.all.factors)
    summary: dict[str, dict[str, float | None]] = {}
    for order, found in certificates.items():
        share = missing = noise = None
        if found is not None:
            missing = len(found.images)
            if is_ood.any():
                share = float(found.certified[is_ood].mean())
            asked = rows[found.certified & is_ood]
            noise = measure_noise(train, asked, order) if len(asked) else None
        summary[str(order)] = {
            "certified": share,
            "missing_rank": missing,
            "noise_mean": None if noise is None else float(noise.mean()),
            "noise_max": None if noise is None else float(noise.max()),
        }
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
    """Returns the variance of determined sums, [n]; None for a large design.

    Tables are classes, int [t, F] and [n, F], all of whose rows differ.
    """
    table = np.concatenate([train, points])
    if math.comb(table.shape[1], order) > MAX_COLUMNS:
        return None
    codes, count = number_effects(table, order)
    if count > MAX_COLUMNS:
        return None
    products = make_products(codes[: len(train)], count)
    inverse = np.linalg.pinv(products, rcond=RANK, hermitian=True)
    inverse = np.pad(inverse, (0, 1))  # the place of absent effects, -1
    variance = np.zeros(len(points))
    for first, second in itertools.product(codes[len(train) :].T, repeat=2):
        variance += inverse[first, second]
    return variance


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
    chosen = choose_rows(len(rows), min(MAX_EXPLAINED, limit))
    combinations, rows = combinations[chosen], rows[chosen]

    if dataset.draw_all is None:
        images = dataset.render_array(dataset.splits.train[rows])
        around = np.zeros(len(images))
    else:
        share = max(1, limit // len(chosen))
        groups = [np.flatnonzero(numbers == number) for number in chosen]
        images, around = _average_training(dataset, groups, share)

    explained: dict[str, float] = {}
    for order in range(1, min(MAX_ORDER, len(dataset.space)) + 1):
        r2 = explain_images(combinations, images, order, around)
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
    if math.comb(train.shape[1], order) > MAX_COLUMNS:
        return None
    codes, count = number_effects(train, order)
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
    error = np.sum(errors**2)
    spread = np.sum((flat - flat.mean(axis=0))[is_open] ** 2)
    if around is not None:
        error += around[is_open].sum()
        spread += around[is_open].sum()
    return float(1 - error / spread) if spread else None


def measure_coverage(dataset: Dataset) -> dict[str, float]:
    """Returns the shares that training covers, each 0 to 1.

    `combinations` of all existing ones; `values` of a factor, averaged over
    factors; `pixels` that change over the data and reach half of their range
    in training, measured on a random part of large data.
    """
    space, splits = dataset.space, dataset.splits
    columns = space.to_index(splits.train).T
    values = [
        len(np.unique(column[column >= 0])) / factor.size
        for column, factor in zip(columns, space, strict=True)
    ]
    every = splits.all.factors
    share = max(1, MAX_IMAGES // len(every))  # images of a combination

    def render(rows: np.ndarray) -> np.ndarray:
        return dataset.render_all(every[rows], share * len(rows))[0]

    low, high = _find_range(dataset.render_training, len(splits.train))
    other_low, other_high = _find_range(render, len(every))
    whole = np.maximum(high, other_high) - np.minimum(low, other_low)
    varies = whole > CHANGE * min(1, whole.max())
    is_seen = varies & (high - low >= RANGE_SHARE * whole)
    is_ood = splits.all.is_ood
    trained = splits.train[dataset.region.contains(splits.train)]  # train_all
    both = np.concatenate([splits.all.factors, trained])
    rows, inside = np.split(number_rows(space.to_index(both)), [len(is_ood)])
    seen = np.where(is_ood, np.isin(rows, inside), ~splits.all.is_test)
    return {
        "combinations": float(np.mean(seen)),
        "values": float(np.mean(values)),
        "pixels": float(is_seen.sum() / max(varies.sum(), 1)),
    }


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
