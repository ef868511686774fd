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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import (
    FactorSpace,
    find_rows,
    number_rows,
    number_values,
)
from tfcomp.datasets.splits import choose_rows

MAX_ORDER = 3
MAX_COLUMNS = 6000  # of normal equations, .3 GB
MAX_CODES = 2**26  # numbers of the design's columns, .5 GB
PART = 2**22  # numbers of them that are multiplied at a time
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
NUMBERS = (
    "certified",
    "missing_rank",
    "noise_mean",
    "noise_max",
)
Numbers = dict[str, float | None]


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


def certify(
    train: Array,
    every: Array,
    order: int,
) -> Certificate | None:
    """Finds the combinations that training determines.

    Args:
        train: Classes of the training combinations, int [t, F]. An absent
            factor, -1, counts as a value.
        every: Classes of the combinations that are judged, int [n, F].
        order: The number of factors that may interact, at least 1.

    Returns:
        None if the design has too many columns.
    """
    num_train = len(train)
    points = np.concatenate([train, every])
    ranges = np.ptp(points, axis=0)
    points = points[:, ranges > 0]
    num_factors = points.shape[1]
    if order >= num_factors:
        return _certify_training(points, num_train)

    points -= points.min(axis=0)
    last = points.max(axis=0)
    if count_columns(last + 1, order) > MAX_COLUMNS:
        return None
    num_groups = math.comb(num_factors, order)
    if num_groups * len(points) > MAX_CODES:
        return None

    codes, num_columns = number_effects(points, order)
    train_codes = codes[:num_train]
    codes = codes[num_train:]
    null = _find_null(train_codes, num_columns)
    is_open = _is_open(codes, null)
    images = _complete(codes, null)
    return Certificate(~is_open, images)


def _certify_training(
    points: Array,
    num_train: int,
) -> Certificate:
    """Certifies training combinations alone: all factors may interact."""
    numbers = number_rows(points)
    train = numbers[:num_train]
    rows = numbers[num_train:]
    certified = np.isin(rows, train)

    _, first = np.unique(rows, return_index=True)
    is_missing = ~certified[first]
    return Certificate(certified, images=first[is_missing])


def count_columns(sizes: Iterable[int], order: int) -> float:
    """Counts the combinations of values of `order` factors, a column for each.

    Args:
        sizes: Numbers of values of the factors.
        order: The number of factors that interact.
    """
    # By how many factors are combined. Floats: counts may be huge.
    counts = np.zeros(order + 1)
    counts[0] = 1
    for size in sizes:
        counts[1:] += size * counts[:-1]
    return counts[order]


def number_effects(
    table: Array,
    order: int,
) -> tuple[Array, int]:
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

    factors = range(num_factors)
    subsets: list[tuple[int, ...]] = []
    for size in range(smallest, largest + 1):
        subsets += itertools.combinations(factors, size)

    columns = []
    num_columns = 0
    for subset in subsets:
        part = table[:, subset]
        is_absent = (part < 0).any(axis=1)
        numbers = _number_present(part)
        places = num_columns + numbers
        column = np.where(is_absent, -1, places)
        columns.append(column)
        last = numbers.max(initial=-1)
        num_columns += int(last) + 1
    codes = np.stack(columns, axis=1)
    return codes, num_columns


def _number_present(classes: Array) -> Array:
    """Numbers the rows of classes [n, S], where -1 counts as 0, [n]."""
    present = np.maximum(classes, 0)
    last = present.max(axis=0, initial=0)
    flat = np.ravel_multi_index(present.T, last + 1)
    return number_values(flat)


def make_products(codes: Array, num_columns: int) -> Array:
    """Makes the normal equations of one-hot rows, [columns, columns].

    Args:
        codes: The columns with a 1 in each row, [n, S], -1 for none.
        num_columns: The number of columns.
    """
    from scipy import sparse

    total = np.zeros((num_columns, num_columns))
    num_rows = max(1, PART // codes.shape[1])
    for start in range(0, len(codes), num_rows):
        part = codes[start : start + num_rows]
        rows, subsets = np.nonzero(part >= 0)
        ones = np.ones(len(rows))
        columns = part[rows, subsets]
        places = (rows, columns)
        design = sparse.csr_array(
            (ones, places),
            shape=(len(part), num_columns),
        )
        products = design.T @ design
        total += products.toarray()
    return total


def _find_null(codes: Array, num_columns: int) -> Array:
    """Finds an orthonormal basis of the null space, [columns, d]."""
    from scipy.linalg import lapack, solve_triangular

    products = make_products(codes, num_columns)
    squares = products.diagonal()
    squares = np.maximum(squares, 1)
    scales = 1 / np.sqrt(squares)
    column_scales = scales[:, None]
    scaled = scales * products * column_scales
    lower, pivots, rank, _ = lapack.dpstrf(
        scaled,
        tol=RANK,
        lower=1,
    )
    order = pivots - 1
    determined = order[:rank]
    free = order[rank:]

    num_free = len(free)
    shape = (num_columns, num_free)
    null = np.zeros(shape)
    null[free] = np.eye(num_free)
    null[determined] = -solve_triangular(
        lower[:rank, :rank],
        lower[rank:, :rank].T,
        trans=1,
        lower=True,
    )
    scaled_null = column_scales * null
    basis, _ = np.linalg.qr(scaled_null)
    return basis


def _is_open(codes: Array, null: Array) -> Array:
    """Marks rows [n] that are not in the row space."""
    rng = np.random.default_rng(0)
    num_vectors = null.shape[1]
    shape = (num_vectors, TESTS)
    weights = rng.normal(size=shape)
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
    shape = (len(codes), vectors.shape[1])
    total = np.zeros(shape)
    for column in codes.T:  # at once, the terms would take gigabytes
        total += vectors[column]
    return total


def _complete(codes: Array, null: Array) -> Array:
    """Chooses the fewest rows that complete the row space."""
    from scipy.linalg import qr

    rng = np.random.default_rng(1)
    images = [np.empty(0, int)]
    while True:
        is_open = _is_open(codes, null)
        rows = np.flatnonzero(is_open)
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
        smallest = RANK * sizes[0]
        basis = basis[:, sizes > smallest]
        num_images = basis.shape[1]
        best = pivots[:num_images]
        images.append(rows[best])

        weights = null @ basis
        null = null - weights @ basis.T


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
        num_factors = len(space)
        blank = np.full(num_factors, -1)
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
    points = dataset.splits.train
    classes = dataset.space.to_index(points)
    return np.unique(classes, axis=0)


def summarize_certificates(
    dataset: Dataset,
    certificates: Mapping[int, Certificate | None],
) -> dict[str, Numbers]:
    """Makes the entry of `metrics.json` (docs/data.md), by order.

    `missing_rank` is the number of further images that certify all.

    Args:
        dataset: Has the training examples, and what is held out.
        certificates: The results of `certify_dataset`.
    """
    train = _list_training(dataset)
    points = dataset.splits.all
    is_ood = points.is_ood
    held_out = points.factors[is_ood]
    classes = dataset.space.to_index(held_out)

    summary: dict[str, Numbers] = {}
    for order, certificate in certificates.items():
        numbers: Numbers = dict.fromkeys(NUMBERS)
        summary[str(order)] = numbers
        if certificate is None:
            continue

        certified = certificate.certified[is_ood]
        numbers["missing_rank"] = len(certificate.images)
        if certified.size:
            numbers["certified"] = float(certified.mean())

        determined = classes[certified]
        noise = measure_noise(train, determined, order)
        if noise is not None:
            numbers["noise_mean"] = float(noise.mean())
            numbers["noise_max"] = float(noise.max())
    return summary


def list_missing_images(
    dataset: Dataset,
    certificate: Certificate | None,
) -> list[dict[Any, Any]]:
    """Returns the images to add: values or levels by factor.

    Args:
        dataset: The dataset that was certified.
        certificate: The certificate of an order, if there is one.
    """
    import pandas as pd

    if certificate is None:
        return []
    points = dataset.splits.all.factors
    table = points[certificate.images]
    columns = dataset.space.name_values(table)
    return pd.DataFrame(columns).to_dict("records")


def mark_certified(
    dataset: Dataset,
    certificate: Certificate,
) -> Array:
    """Returns 1, 0 or NaN (not held out) for each point of the grid, [n].

    Args:
        dataset: The dataset that was certified.
        certificate: The certificate of an order.
    """
    is_ood = dataset.splits.all.is_ood
    marks = np.where(is_ood, certificate.certified, np.nan)
    return dataset.select_points(marks)


def measure_noise(
    train: Array,
    points: Array,
    order: int,
) -> Array | None:
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

    num_train = len(train)
    train_codes = codes[:num_train]
    codes = codes[num_train:]
    products = make_products(train_codes, num_columns)
    inverse = np.linalg.pinv(
        products,
        rcond=RANK,
        hermitian=True,
    )
    inverse = np.pad(inverse, (0, 1))  # the place of absent effects, -1

    variance = np.zeros(len(points))
    pairs = itertools.product(codes.T, repeat=2)
    for first, second in pairs:
        variance += inverse[first, second]
    return variance


def _number_few_effects(
    table: Array,
    order: int,
) -> tuple[Array, int]:
    """Numbers effects, unless even the groups of factors are too many."""
    count, num_factors = table.shape
    num_groups = math.comb(num_factors, order)
    if num_groups > FEW_COLUMNS:
        no_codes = np.empty((count, 0), int)
        return no_codes, num_groups
    return number_effects(table, order)


def explain_training(dataset: Dataset) -> dict[str, float]:
    """Computes R^2 of training images from the others, by order from 1 to 3.

    The others show other combinations: several images of a
    combination are left out together.
    """
    train = dataset.splits.train
    index = dataset.space.to_index(train)
    combinations, rows, numbers = np.unique(
        index,
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    num_pixels = math.prod(dataset.image_shape)
    limit = MAX_NUMBERS // num_pixels
    limit = max(1, limit)  # images
    num_explained = min(MAX_EXPLAINED, limit)
    sample = choose_rows(len(rows), num_explained)
    rows = rows[sample]
    combinations = combinations[sample]

    if dataset.draw_all is None:
        images = dataset.render_array(train[rows])
        around = np.zeros(len(images))
    else:
        groups = []
        for number in sample:
            is_member = numbers == number
            group = np.flatnonzero(is_member)
            groups.append(group)
        share = limit // len(sample)
        share = max(1, share)
        images, around = _average_training(dataset, groups, share)

    explained: dict[str, float] = {}
    for order in _list_orders(dataset.space):
        r2 = explain_images(
            combinations,
            images,
            order,
            around,
        )
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
    distances = []
    for rows in groups:
        sample = choose_rows(len(rows), share)
        images = dataset.render_training(rows[sample])
        images = images.astype(np.float64)
        mean = images.mean(axis=0)
        means.append(mean)

        squares = np.square(images - mean)
        distance = squares.sum() / len(images)
        distances.append(distance)
    around = np.array(distances)
    return np.stack(means), around


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
    count = len(images)
    squares = basis**2
    leverage = squares.sum(axis=1)
    left = 1 - leverage
    is_open = left > OPEN
    num_open = is_open.sum()
    if 2 * num_open <= count:
        return None

    flat = images.reshape(count, -1)
    flat = flat.astype(np.float64)
    weights = basis.T @ flat
    residuals = flat - basis @ weights
    divisors = left[is_open, None]
    errors = residuals[is_open] / divisors
    mean = flat.mean(axis=0)
    deviations = flat[is_open] - mean

    error = np.sum(errors**2)
    spread = np.sum(deviations**2)
    if around is not None:
        unexplained = around[is_open].sum()
        error += unexplained
        spread += unexplained
    if not spread:
        return None
    r2 = 1 - error / spread
    return float(r2)


def _span_effects(codes: Array, num_columns: int) -> Array:
    """Finds an orthonormal basis of the effects and a constant, [n, rank].

    Args:
        codes: The columns with a 1 in each row, [n, S], -1 for none.
        num_columns: The number of columns.
    """
    count = len(codes)
    shape = (count, num_columns + 1)
    design = np.zeros(shape)
    rows = np.arange(count)
    design[rows[:, None], codes] = 1
    design[:, -1] = 1  # a constant, in the place of absent effects
    basis, values, _ = np.linalg.svd(design, full_matrices=False)
    largest = values.max(initial=0)
    is_kept = values > RANK * largest
    return basis[:, is_kept]


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
    is_held_out = dataset.region.contains(train)
    inside = space.to_index(train[is_held_out])
    places = find_rows(space.to_index(points.factors), inside)

    is_inside = places >= 0
    is_trained = ~points.is_test
    is_covered = np.where(points.is_ood, is_inside, is_trained)
    return float(is_covered.mean())


def _cover_values(dataset: Dataset) -> float:
    train = dataset.splits.train
    index = dataset.space.to_index(train)
    shares = []
    for column, factor in enumerate(dataset.space):
        levels = np.unique(index[:, column])
        num_present = np.sum(levels >= 0)
        shares.append(num_present / factor.size)
    return float(np.mean(shares))


def _cover_pixels(dataset: Dataset) -> float:
    points = dataset.splits.all.factors
    num_points = len(points)
    share = max(1, MAX_IMAGES // num_points)  # images of a combination

    def render(rows: Array) -> Array:
        limit = share * len(rows)
        part = points[rows]
        images, _ = dataset.render_all(part, limit)
        return images

    num_train = len(dataset.splits.train)
    train_low, train_high = _find_range(dataset.render_training, num_train)
    low, high = _find_range(render, num_points)
    lowest = np.minimum(train_low, low)
    highest = np.maximum(train_high, high)

    spread = highest - lowest
    largest = spread.max()
    smallest = CHANGE * min(1, largest)
    varies = spread > smallest
    train_spread = train_high - train_low
    is_covered = train_spread >= RANGE_SHARE * spread

    num_varying = max(varies.sum(), 1)
    num_covered = np.sum(varies & is_covered)
    return float(num_covered / num_varying)


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
    num_rows = len(rows)
    num_parts = math.ceil(num_rows / RENDERED)
    lows = []
    highs = []
    for part in np.array_split(rows, num_parts):
        images = render(part)
        part_low = images.min(axis=0)
        part_high = images.max(axis=0)
        lows.append(part_low)
        highs.append(part_high)
    low = np.min(lows, axis=0)
    high = np.max(highs, axis=0)
    return low, high
