"""Combinations that training determines, and the share that it covers.

Let f be any function of the factors without interactions of more than k of
them (the order): a sum of functions of k factors each. A combination is
*certified* (or determined) at the order k if the values of f on the training
set determine its value there. In the terms of the ANOVA design, which has a
column for every combination of the values of k factors: if its row lies in the
row space of the training rows. At order 1 that is the affine hull of one-hot
codes (compositional risk minimization, Mahajan, Pezeshki and others).

The row space is known by its null space, from a pivoted Cholesky decomposition
of the normal equations. A row lies in it if random vectors of the null space
vanish on the row. An absent factor, as of a stripe, adds nothing, and an image
of no factor is blank.

A determined sum of effects is a weighted sum of training images. With an
independent error of the same variance in each of these, its least squares
estimate has the variance a (A^T A)^+ a^T, in units of an image's, for
the one-hot rows A of training and the row a of the combination.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import FactorSpace, number, number_rows
from tfcomp.datasets.splits import choose_rows

MAX_ORDER = 3
MAX_COLUMNS = 6000  # of normal equations, .3 GB
RANK = 1e-9  # relative to the largest pivot or singular value: less is rounding
ROUNDING = 1e-6  # of the sum of a row with a null vector
TESTS = 3  # random vectors
ROWS = 512  # combinations that are added at a time
# Training images that are compared with sums, and numbers of all of them.
MAX_EXPLAINED = 1024
MAX_NUMBERS = 2**24
FEW_COLUMNS = 600  # of designs whose decomposition takes a second
OPEN = 1e-6  # of 1 less the leverage: below, the others know nothing
MAX_IMAGES = 4096  # of training and of the grid, whose pixels are compared
RENDERED = 64  # combinations at a time
RANGE_SHARE = 0.5  # of a pixel's range over the data: training covers it
CHANGE = 1 / 255  # pixels with a smaller range, or share of the largest
NUMBERS = ("certified", "missing_rank", "noise_mean", "noise_max")


@dataclass(frozen=True)
class Certificate:
    """What training determines at an order.

    Attributes:
        certified: Mask of the combinations that are determined, [n].
        images: Rows of the fewest further combinations with which all are
            determined.
    """

    certified: Array
    images: Array


def certify(train: Array, every: Array, order: int) -> Certificate | None:
    """Finds the combinations that training determines.

    Args:
        train: Classes of the training combinations, int [t, F]. An absent
            factor, -1, counts as a value.
        every: Classes of the combinations that are judged, int [n, F].
        order: The number of factors that may interact, at least 1.

    Returns:
        None if the design has too many columns.
    """
    points = np.concatenate([train, every])
    varies = np.ptp(points, axis=0) > 0
    points = points[:, varies]
    if order >= points.shape[1]:
        return _certify_known(points, len(train))

    points -= points.min(axis=0)
    sizes = points.max(axis=0) + 1
    if exceeds_columns(sizes.tolist(), order, MAX_COLUMNS):
        return None

    codes, num_columns = number_effects(points, order)
    train_codes, codes = np.split(codes, [len(train)])
    null = _find_null(train_codes, num_columns)
    certified = ~_is_open(codes, null)
    return Certificate(certified, images=_complete(codes, null))


def _certify_known(points: Array, num_train: int) -> Certificate:
    """Certifies training combinations alone: all factors may interact."""
    numbers = number_rows(points)
    train, rows = np.split(numbers, [num_train])
    certified = np.isin(rows, train)

    _, first = np.unique(rows, return_index=True)
    is_missing = ~certified[first]
    return Certificate(certified, images=first[is_missing])


def exceeds_columns(sizes: Sequence[int], order: int, most: int) -> bool:
    """Tells whether a design may have more than `most` columns.

    It stops counting there: 312 factors have five million triples.

    Args:
        sizes: Numbers of values of the factors.
        order: The number of factors that interact.
        most: The largest number of columns.
    """
    count = 0
    for subset in itertools.combinations(sizes, order):
        count += math.prod(subset)
        if count > most:
            return True
    return False


def number_effects(table: Array, order: int) -> tuple[Array, int]:
    """Numbers the effects of `order` factors, the columns of the design.

    Where a factor can be absent, there are effects of fewer factors, too.

    Args:
        table: Classes, int [n, F]; -1 where a factor is absent.
        order: The number of factors that interact.

    Returns:
        The columns in which a row of the design has a 1, int [n, S], -1 if a
        factor is absent; and the number of columns.
    """
    num_factors = table.shape[1]
    largest = min(order, num_factors)
    smallest = largest
    if (table < 0).any():
        smallest = 1

    columns = []
    num_columns = 0
    for size in range(smallest, largest + 1):
        for subset in itertools.combinations(range(num_factors), size):
            part = table[:, subset]
            is_absent = (part < 0).any(axis=1)
            places = _number_present(part)
            column = np.where(is_absent, -1, places + num_columns)
            columns.append(column)
            num_columns += int(places.max(initial=-1)) + 1
    return np.stack(columns, axis=1), num_columns


def _number_present(classes: Array) -> Array:
    """Numbers the rows of classes [n, S], where -1 counts as 0, [n]."""
    present = np.maximum(classes, 0)
    sizes = present.max(axis=0, initial=0) + 1
    flat = np.ravel_multi_index(present.T, sizes)
    return number(flat)


def make_products(codes: Array, num_columns: int) -> Array:
    """Makes the normal equations of one-hot rows, [columns, columns].

    Args:
        codes: The columns with a 1 in each row, [n, S], -1 for none.
        num_columns: The number of columns.
    """
    from scipy import sparse

    rows, subsets = np.nonzero(codes >= 0)
    ones = np.ones(len(rows))
    columns = codes[rows, subsets]
    design = sparse.csr_array(
        (ones, (rows, columns)),
        shape=(len(codes), num_columns),
    )
    products = design.T @ design
    return products.toarray()


def _find_null(codes: Array, num_columns: int) -> Array:
    """Finds an orthonormal basis of the null space, [columns, d]."""
    from scipy.linalg import lapack, solve_triangular

    products = make_products(codes, num_columns)
    squares = np.maximum(products.diagonal(), 1)
    scales = 1 / np.sqrt(squares)
    scaled = scales * products * scales[:, None]
    lower, pivots, rank, _ = lapack.dpstrf(
        scaled,
        tol=RANK,
        lower=1,
    )
    determined, free = np.split(pivots - 1, [rank])

    null = np.zeros((num_columns, len(free)))
    null[free] = np.eye(len(free))
    null[determined] = -solve_triangular(
        lower[:rank, :rank],
        lower[rank:, :rank].T,
        trans=1,
        lower=True,
    )
    scaled_null = scales[:, None] * null
    basis, _ = np.linalg.qr(scaled_null)
    return basis


def _is_open(codes: Array, null: Array) -> Array:
    """Marks rows [n] that are not in the row space."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(null.shape[1], TESTS))
    vectors = null @ weights
    totals = _sum_columns(vectors, codes)
    is_far = np.abs(totals) > ROUNDING
    return is_far.any(axis=1)


def _sum_columns(vectors: Array, codes: Array) -> Array:
    """Multiplies one-hot rows with vectors, [n, d].

    Args:
        vectors: A row for each column of the design, [columns, d].
        codes: The columns with a 1 in each row, [n, S].
    """
    terms = [vectors[column] for column in codes.T]
    return np.sum(terms, axis=0)


def _complete(codes: Array, null: Array) -> Array:
    """Chooses the fewest rows that complete the row space."""
    from scipy.linalg import qr

    rng = np.random.default_rng(1)
    images = [np.empty(0, int)]
    while True:
        rows = np.flatnonzero(_is_open(codes, null))
        if not rows.size:
            return np.concatenate(images)
        if len(rows) > ROWS:
            sample = rng.choice(rows, ROWS, replace=False)
            rows = np.sort(sample)

        block = _sum_columns(null, codes[rows])  # [rows, d]
        basis, upper, pivots = qr(
            block.T,
            mode="economic",
            pivoting=True,
        )
        sizes = np.abs(upper.diagonal())
        is_independent = sizes > RANK * sizes[0]
        basis = basis[:, is_independent]
        num_images = basis.shape[1]
        images.append(rows[pivots[:num_images]])
        null = null - (null @ basis) @ basis.T


def certify_dataset(
    dataset: Dataset,
    points: Array | None = None,
    max_order: int = MAX_ORDER,
) -> dict[int, Certificate | None]:
    """Certifies combinations at the orders 1 to 3, or up to F.

    Args:
        dataset: Its training examples are what determines.
        points: The combinations that are judged, factor values [n, F]; by
            default all that exist.
        max_order: The largest order.
    """
    space = dataset.space
    if points is None:
        points = dataset.splits.all.factors
    train = _list_training(dataset)
    if (train < 0).any():
        # An image of no factor is blank.
        blank = np.full(len(space), -1)
        train = np.vstack([train, blank])

    classes = space.to_index(points)
    certificates = {}
    for order in _list_orders(space):
        if order <= max_order:
            certificates[order] = certify(train, classes, order)
    return certificates


def _list_orders(space: FactorSpace) -> range:
    largest = min(MAX_ORDER, len(space))
    return range(1, largest + 1)


def _list_training(dataset: Dataset) -> Array:
    """Lists distinct training combinations as classes, int [n, F]."""
    classes = dataset.space.to_index(dataset.splits.train)
    return np.unique(classes, axis=0)


def summarize_certificates(
    dataset: Dataset,
    certificates: Mapping[int, Certificate | None],
) -> dict[str, dict[str, float | None]]:
    """Makes the entry of `metrics.json` (docs/solvable.md), by order.

    `missing_rank` is the number of further images that certify all.

    Args:
        dataset: Has the training examples, and what is held out.
        certificates: The results of `certify_dataset`.
    """
    points = dataset.splits.all
    train = _list_training(dataset)
    classes = dataset.space.to_index(points.factors)

    summary: dict[str, dict[str, float | None]] = {}
    for order, certificate in certificates.items():
        numbers: dict[str, float | None] = dict.fromkeys(NUMBERS)
        summary[str(order)] = numbers
        if certificate is None:
            continue

        certified = certificate.certified[points.is_ood]
        numbers["missing_rank"] = len(certificate.images)
        if certified.size:
            numbers["certified"] = float(certified.mean())
        determined = classes[points.is_ood][certified]
        noise = measure_noise(train, determined, order)
        if noise is not None:
            numbers["noise_mean"] = float(noise.mean())
            numbers["noise_max"] = float(noise.max())
    return summary


def list_images(
    dataset: Dataset,
    certificate: Certificate | None,
) -> list[dict[str, Any]]:
    """Returns the images to add: values or levels by factor.

    Args:
        dataset: The dataset that was certified.
        certificate: The certificate of an order, if there is one.
    """
    if certificate is None:
        return []
    table = dataset.splits.all.factors[certificate.images]
    columns = dataset.space.name_values(table)
    values = [column.tolist() for column in columns.values()]

    images = []
    for row in zip(*values, strict=True):
        image = dict(zip(columns, row, strict=True))
        images.append(image)
    return images


def mark_certified(dataset: Dataset, certificate: Certificate) -> Array:
    """Returns 1, 0 or NaN (not held out) for each point of the grid, [n].

    Args:
        dataset: The dataset that was certified.
        certificate: The certificate of an order.
    """
    is_ood = dataset.splits.all.is_ood
    marks = np.where(is_ood, certificate.certified, np.nan)
    return dataset.select_points(marks)


def measure_noise(train: Array, points: Array, order: int) -> Array | None:
    """Computes the variance of determined sums of effects.

    Args:
        train: Classes of distinct training combinations, int [t, F].
        points: Classes of determined combinations, int [n, F].
        order: The number of factors that interact.

    Returns:
        The variance in units of an image's, [n]; None for a large design, or
        without points.
    """
    if not len(points):
        return None
    table = np.concatenate([train, points])
    codes, num_columns = _number_few_effects(table, order)
    if num_columns > FEW_COLUMNS:
        return None

    train_codes, codes = np.split(codes, [len(train)])
    products = make_products(train_codes, num_columns)
    inverse = np.linalg.pinv(
        products,
        rcond=RANK,
        hermitian=True,
    )
    inverse = np.pad(inverse, (0, 1))  # the place of absent effects, -1

    variance = np.zeros(len(points))
    for first, second in itertools.product(codes.T, repeat=2):
        variance += inverse[first, second]
    return variance


def _number_few_effects(table: Array, order: int) -> tuple[Array, int]:
    """Numbers effects, unless even the groups of factors are too many."""
    num_groups = math.comb(table.shape[1], order)
    if num_groups > FEW_COLUMNS:
        return np.empty((len(table), 0), int), num_groups
    return number_effects(table, order)


def explain_training(dataset: Dataset) -> dict[str, float]:
    """Computes R^2 of training images from the others, by order from 1 to 3.

    The others show other combinations: several images of a
    combination are left out together.
    """
    index = dataset.space.to_index(dataset.splits.train)
    combinations, rows, numbers = np.unique(
        index,
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    num_pixels = math.prod(dataset.image_shape)
    limit = max(1, MAX_NUMBERS // num_pixels)  # images
    sample = choose_rows(len(rows), min(MAX_EXPLAINED, limit))

    if dataset.draw_all is None:
        points = dataset.splits.train[rows[sample]]
        images = dataset.render_array(points)
        around = np.zeros(len(images))
    else:
        groups = [np.flatnonzero(numbers == number) for number in sample]
        share = max(1, limit // len(sample))
        images, around = _average_training(dataset, groups, share)

    explained: dict[str, float] = {}
    for order in _list_orders(dataset.space):
        r2 = explain_images(combinations[sample], images, order, around)
        if r2 is None:
            break
        explained[str(order)] = r2
    return explained


def _average_training(
    dataset: Dataset,
    groups: Sequence[Array],
    share: int,
) -> tuple[Array, Array]:
    """Averages training images of combinations.

    Args:
        dataset: Has the training images.
        groups: Rows of the training table, an array for each combination.
        share: The largest number of images of a combination.

    Returns:
        Mean images [n, H, W, C], and the mean squared distance of the images
        from them, [n], a sum over pixels.
    """
    means = []
    around = []
    for rows in groups:
        sample = rows[choose_rows(len(rows), share)]
        images = dataset.render_training(sample).astype(np.float64)
        mean = images.mean(axis=0)
        means.append(mean)
        squares = np.square(images - mean)
        around.append(squares.sum() / len(images))
    return np.stack(means), np.array(around)


def explain_images(
    train: Array,
    images: Array,
    order: int,
    around: Array | None = None,
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
    if num_columns > FEW_COLUMNS:
        return None

    basis = _span_effects(codes, num_columns)
    # An image's error from the others is its residual / (1 - leverage).
    left = 1 - np.sum(basis**2, axis=1)
    is_open = left > OPEN
    if 2 * is_open.sum() <= len(train):
        return None

    flat = images.reshape(len(images), -1)
    flat = flat.astype(np.float64)
    residuals = flat - basis @ (basis.T @ flat)
    errors = residuals[is_open] / left[is_open, None]
    deviations = flat - flat.mean(axis=0)

    error = np.sum(errors**2)
    spread = np.sum(deviations[is_open] ** 2)
    if around is not None:
        unexplained = around[is_open].sum()
        error += unexplained
        spread += unexplained
    if not spread:
        return None
    return float(1 - error / spread)


def _span_effects(codes: Array, num_columns: int) -> Array:
    """Finds an orthonormal basis of the effects and a constant, [n, rank].

    Args:
        codes: The columns with a 1 in each row, [n, S], -1 for none.
        num_columns: The number of columns.
    """
    design = np.zeros((len(codes), num_columns + 1))
    rows = np.arange(len(codes))[:, None]
    design[rows, codes] = 1
    design[:, -1] = 1  # a constant, in the place of absent effects
    basis, values, _ = np.linalg.svd(design, full_matrices=False)
    largest = values.max(initial=0)
    return basis[:, values > RANK * largest]


def measure_coverage(dataset: Dataset) -> dict[str, float]:
    """Measures the shares that training covers, each 0 to 1.

    Returns:
        `combinations` of all existing ones; `values` of a factor, averaged
        over factors; `pixels` that change over the data and reach half of
        their range in training, measured on a random part of large data.
    """
    return {
        "combinations": cover_combinations(dataset),
        "values": _cover_values(dataset),
        "pixels": _cover_pixels(dataset),
    }


def cover_combinations(dataset: Dataset) -> float:
    """Measures the share of the existing combinations that training has."""
    space = dataset.space
    train = dataset.splits.train
    points = dataset.splits.all

    # Training has held-out combinations with --train_all.
    inside = train[dataset.region.contains(train)]
    table = np.concatenate([points.factors, inside])
    numbers = number_rows(space.to_index(table))
    rows, inside_rows = np.split(numbers, [len(points)])
    is_inside = np.isin(rows, inside_rows)

    is_trained = np.where(points.is_ood, is_inside, ~points.is_test)
    return float(is_trained.mean())


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

    def render(rows: Array) -> Array:
        images, _ = dataset.render_all(points[rows], share * len(rows))
        return images

    num_train = len(dataset.splits.train)
    train_low, train_high = _find_range(dataset.render_training, num_train)
    low, high = _find_range(render, len(points))
    lowest = np.minimum(train_low, low)
    highest = np.maximum(train_high, high)

    spread = highest - lowest
    largest = min(1, spread.max())
    varies = spread > CHANGE * largest
    train_spread = train_high - train_low
    is_covered = train_spread >= RANGE_SHARE * spread

    num_varying = varies.sum()
    num_covered = (varies & is_covered).sum()
    return float(num_covered / max(num_varying, 1))


def _find_range(
    render: Callable[[Array], Array],
    count: int,
) -> tuple[Array, Array]:
    """Finds the smallest and largest value of each pixel.

    Args:
        render: From rows of a table to images [n, H, W, C].
        count: Number of rows of the table; a random part is drawn.

    Returns:
        Both values, [H, W, C] each.
    """
    rows = choose_rows(count, MAX_IMAGES)
    num_parts = math.ceil(len(rows) / RENDERED)
    lows = []
    highs = []
    for part in np.array_split(rows, num_parts):
        images = render(part)
        lows.append(images.min(axis=0))
        highs.append(images.max(axis=0))
    low = np.min(lows, axis=0)
    high = np.max(highs, axis=0)
    return low, high
