"""Samples of a conditional generator, judged by the factors that are read.

An error in pixels says nothing of a sample. A reader says which factors each
sample shows, and three scores follow:

    conformity    share of samples in which all factors are read as asked
    independence  bits by which the readings of factors depend on each other,
                  over conditions that differ in one factor (arXiv 2503.01145)
    coverage      share of samples whose nuisances would have to change, to be
                  distributed as in the images of the combination

The last two are 0 for a perfect generator and infinitely many samples; beside
them stands what few samples make of a perfect one. Do not compare two models by
them that drew different numbers of samples.
"""

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import number_rows
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.references import list_levels
from tfcomp.representations.readers import (
    Reader,
    Readings,
    Row,
    measure_shares,
)

PERMUTATIONS = 10  # random readings that are a reference
BOOTSTRAPS = 1000
DRAWN = 50  # bootstraps at a time
MAX_LINES = 200  # of each factor, over which readings are compared


def list_samples(
    reader: Reader,
    dataset: Dataset,
    readings: Readings,
    nuisances: Readings | None,
) -> list[Row]:
    """Scores samples by what a reader finds in them.

    Args:
        reader: Reads the factors.
        dataset: Has the conditions, which are the points of the grid.
        readings: The factors that it finds.
        nuisances: The nuisances that `reader.nuisance` finds, if there are any.

    Returns:
        A row for each `score`, `subset`, `level` and `factor`: the `value`, the
        ends `low` and `high` of its 95 % interval, and a `reference`: the
        conformity of true images, the independence of permuted readings, or
        the coverage by random training images. `ceiling` is the share of true
        images in which the factor is read right.
    """
    shares, truth = measure_shares(reader, dataset, readings)
    rows = []
    for subset, level, mask in list_levels(dataset):
        row = _summarize(
            shares[mask, -1],
            truth[mask, -1],
            score="conformity",
            subset=subset,
            level=level,
            factor="all",
        )
        row["ceiling"] = row["reference"]
        rows.append(row)

    names = dataset.space.names
    if len(names) > 1:
        for column, name in enumerate(names):
            lines = _compare_lines(dataset, readings.samples, column)
            ceiling = truth[:, column].mean()
            rows += _list_subsets(
                "independence",
                name,
                lines,
                float(ceiling),
            )

    # One sample of a combination says nothing of their distribution.
    if nuisances is not None and len(readings.samples) > 1:
        rows += _list_coverage(reader, dataset, nuisances)
    return rows


def _list_subsets(
    score: str,
    factor: str,
    distances: dict[str, Array],
    ceiling: float,
) -> list[Row]:
    """Lists a score of a factor by subset.

    Args:
        score: Its name.
        factor: The name of the factor.
        distances: Values and references, [k, 2], by subset.
        ceiling: Share of true images in which the factor is read right.
    """
    rows = []
    for subset, pairs in distances.items():
        if not len(pairs):
            continue
        values, references = pairs.T
        row = _summarize(
            values,
            references,
            score=score,
            subset=subset,
            level="any",
            factor=factor,
        )
        row["ceiling"] = ceiling
        rows.append(row)
    return rows


def _summarize(values: Array, references: Array, **keys: str) -> Row:
    """Averages values [k] of combinations, with an interval by bootstrap."""
    low = None
    high = None
    if len(values) > 1:
        low, high = bootstrap_mean(values)
    return {
        **keys,
        "value": float(values.mean()),
        "low": low,
        "high": high,
        "reference": float(references.mean()),
    }


def bootstrap_mean(values: Array) -> tuple[float, float]:
    """Computes the 95 % interval of a mean by the percentile bootstrap.

    Args:
        values: Values of combinations, [k]. Of a few, and of equal ones, the
            interval is too short.
    """
    rng = np.random.default_rng(0)
    count = len(values)
    means = []
    for _ in range(BOOTSTRAPS // DRAWN):
        rows = rng.integers(count, size=(DRAWN, count))
        drawn = values[rows]
        means.append(drawn.mean(axis=1))
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def _compare_lines(
    dataset: Dataset,
    samples: Array,
    column: int,
) -> dict[str, Array]:
    """Measures the dependence of readings where one factor is varied.

    Args:
        dataset: Has the conditions.
        samples: Readings, [S, n, F].
        column: The factor that differs between the conditions of a line.

    Returns:
        Divergences of lines and of permuted readings, [k, 2]: `ood` of lines
        with a held-out condition, `id` of the others.
    """
    splits = dataset.splits
    index = dataset.space.to_index(splits.grid)
    num_factors = index.shape[1]
    others = np.delete(index, column, axis=1)
    lines = number_rows(others)
    counts = np.bincount(lines)
    held_out = np.bincount(lines, weights=splits.is_ood)
    is_long = counts > 1
    subsets = {
        "id": is_long & (held_out == 0),
        "ood": is_long & (held_out > 0),
    }

    rng = np.random.default_rng(0)
    divergences = {}
    for subset, mask in subsets.items():
        numbers = np.flatnonzero(mask)
        rows = choose_rows(len(numbers), MAX_LINES)
        pairs = np.zeros((len(rows), 2))
        for place, number in enumerate(numbers[rows]):
            is_on_line = lines == number
            readings = samples[:, is_on_line]  # [S, conditions, F]
            readings = readings.reshape(-1, num_factors)
            pairs[place, 0] = compute_dependence(readings)
            pairs[place, 1] = _permute(readings, rng)
        divergences[subset] = pairs
    return divergences


def _permute(readings: Array, rng: np.random.Generator) -> float:
    """Computes the mean dependence of readings [k, F] in random order."""
    bits = []
    for _ in range(PERMUTATIONS):
        permuted = rng.permuted(readings, axis=0)  # each factor by itself
        dependence = compute_dependence(permuted)
        bits.append(dependence)
    mean = np.mean(bits)
    return float(mean)


def compute_dependence(readings: Array) -> float:
    """Computes how far readings are from independent factors.

    Args:
        readings: Grid indices, [k, F].

    Returns:
        The Jensen-Shannon divergence between their joint distribution and the
        product of their marginals, in bits, from 0 to 1.
    """
    count = len(readings)
    cells, counts = np.unique(readings, axis=0, return_counts=True)
    joint = counts / count
    product = np.ones(len(cells))
    for column, values in zip(readings.T, cells.T, strict=True):
        levels, numbers = np.unique(column, return_counts=True)
        places = np.searchsorted(levels, values)
        product *= numbers[places] / count

    middle = (joint + product) / 2
    joint_logs = np.log2(joint / middle)
    joint_bits = joint * joint_logs
    product_logs = np.log2(product / middle)
    product_bits = product * product_logs
    # Where the joint distribution is 0, the middle is half of the product: one
    # bit each.
    absent = max(1 - product.sum(), 0.0)
    total = joint_bits.sum() + product_bits.sum() + absent
    divergence = max(total / 2, 0.0)
    return float(divergence)


def _list_coverage(
    reader: Reader,
    dataset: Dataset,
    nuisances: Readings,
) -> list[Row]:
    """Lists how well samples cover the nuisances of true images."""
    assert reader.nuisance is not None
    accuracy = reader.nuisance.accuracy.set_index("factor")
    names = reader.nuisance.space.names
    is_ood = dataset.splits.is_ood
    rows = []
    for column, name in enumerate(names):
        readings = Readings(
            nuisances.samples[:, :, column],
            nuisances.truth[:, column],
            nuisances.rows,
        )
        distances = _compare_nuisances(readings, ~is_ood)
        subsets = {
            "id": distances[~is_ood],
            "ood": distances[is_ood],
        }
        ceiling = accuracy["true"][name]
        rows += _list_subsets(
            "coverage",
            name,
            subsets,
            float(ceiling),
        )
    return rows


def _compare_nuisances(readings: Readings, is_id: Array) -> Array:
    """Compares samples of each combination with its true images.

    Two halves of the true images are no reference: where each value occurs
    once, as in a full grid, they have nothing in common. As many random
    training images of any combination are what a perfect generator draws, if
    nuisances do not depend on factors; if they do, it is better.

    Args:
        readings: Of one nuisance, samples [S, n] and truth [m].
        is_id: Which of the points are trained on, [n].

    Returns:
        Distances of samples and of training images, [n, 2].
    """
    rng = np.random.default_rng(0)
    count, num_points = readings.samples.shape
    later_points = np.arange(1, num_points)
    starts = np.searchsorted(readings.rows, later_points)
    truth = np.split(readings.truth, starts)
    is_training = is_id[readings.rows]
    training = readings.truth[is_training]

    distances = np.zeros((num_points, 2))
    shape = (PERMUTATIONS, count)
    for point, images in enumerate(truth):
        samples = readings.samples[:, point]
        distances[point, 0] = compute_distance(samples, images)
        references = []
        for others in rng.choice(training, shape):
            distance = compute_distance(others, images)
            references.append(distance)
        distances[point, 1] = np.mean(references)
    return distances


def compute_distance(first: Array, second: Array) -> float:
    """Computes the total variation between readings, 0 to 1.

    Args:
        first: Grid indices, [j]; -1 where an image is not finite.
        second: Grid indices, [k].
    """
    largest = max(first.max(), second.max())
    size = largest + 2
    counts = np.bincount(first + 1, minlength=size)
    other_counts = np.bincount(second + 1, minlength=size)
    shares = counts / len(first)
    other_shares = other_counts / len(second)
    difference = np.abs(shares - other_shares)
    return float(difference.sum() / 2)
