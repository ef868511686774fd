"""What can be wrong with the examples of a data set.

They are compared with the rules of a held-out region and with what the flags
describe. Every check yields its name and a reason for each anomaly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.materialized import Examples

# Largest difference of a pixel from rendering it again: another processor may
# round otherwise.
TOLERANCE = 1e-5
Anomalies = Iterator[tuple[str, str]]


def find_anomalies(
    dataset: Dataset, train: Examples, ood: Examples
) -> Anomalies:
    """Runs all checks on one data set.

    Args:
        dataset: What the flags describe.
        train: The training examples.
        ood: The held-out examples.

    Yields:
        The name of a check that failed, and the reason in one line.
    """
    yield from check_leaks(dataset, train, ood)
    yield from check_splits(dataset, train, ood)
    yield from check_duplicates(dataset, train)
    yield from check_coverage(dataset, train)
    yield from check_pixels(dataset, "training", train)
    yield from check_pixels(dataset, "held-out", ood)


def check_leaks(dataset: Dataset, train: Examples, ood: Examples) -> Anomalies:
    """No training example lies in the region, every held-out one does."""
    region = dataset.region
    for split, examples, place, wrong in (
        ("training", train, "in", region.contains(train.factors)),
        ("held-out", ood, "outside", ~region.contains(ood.factors)),
    ):
        if wrong.any():
            first = examples.factors[wrong][0].tolist()
            yield (
                "leak",
                f"{wrong.sum()} {split} examples lie {place} the region "
                f"{region.spec}, the first at {first}",
            )


def check_splits(dataset: Dataset, train: Examples, ood: Examples) -> Anomalies:
    """The splits have the examples that the flags describe."""
    splits = dataset.splits
    for split, found, expected in (
        ("training", train.factors, splits.train),
        ("held-out", ood.factors, splits.grid[splits.is_ood]),
    ):
        if len(found) != len(expected):
            yield (
                "splits",
                f"{len(found)} {split} examples, the flags describe "
                f"{len(expected)}",
            )
            continue
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        wrong = np.flatnonzero(~same.all(axis=1))
        if wrong.size:
            yield (
                "splits",
                f"{wrong.size} {split} examples are not where the flags "
                f"describe them, the first is number {wrong[0]} at "
                f"{found[wrong[0]].tolist()}",
            )


def check_duplicates(dataset: Dataset, train: Examples) -> Anomalies:
    """No combination is there more often than the flags describe.

    A rotated digit has its upright image twice, at 0 and at 360 degrees.
    """
    found = _count_duplicates(train.factors)
    expected = _count_duplicates(dataset.splits.train)
    if found > expected:
        yield (
            "duplicates",
            f"{found} training examples repeat another one, the flags "
            f"describe {expected}",
        )


def check_coverage(dataset: Dataset, train: Examples) -> Anomalies:
    """Every factor value that ID has occurs in training.

    Otherwise an OOD error may come from a value that was never seen, and is
    no failure to compose. A gap holds back values altogether, and says so.
    """
    space, splits = dataset.space, dataset.splits
    possible = space.to_index(splits.grid[splits.is_id])
    seen = space.to_index(train.factors)
    for column, factor in enumerate(space):
        missing = np.setdiff1d(possible[:, column], seen[:, column])
        if missing.size:
            first = factor.values()[missing[0]]
            yield (
                "coverage",
                f"{missing.size} values of {factor.name} never occur in "
                f"training, the first is {first:g}",
            )


def check_pixels(dataset: Dataset, split: str, examples: Examples) -> Anomalies:
    """Images are finite, from 0 to 1, not blank, and those of the factors."""
    images = examples.images
    if not images.size:
        return
    infinite = ~np.isfinite(images).all(axis=(1, 2, 3))
    if infinite.any():
        yield "pixels", _describe_images(split, infinite, "not finite")
        return
    low, high = images.min(), images.max()
    if low < 0 or high > 1:
        yield (
            "pixels",
            f"{split} pixels must be from 0 to 1, found {low:g} to {high:g}",
        )
    blank = np.ptp(images, axis=(1, 2, 3)) == 0
    if blank.any():
        yield "pixels", _describe_images(split, blank, "blank")
    if images.shape[1:] != dataset.image_shape:
        yield (
            "pixels",
            f"{split} images are {list(images.shape[1:])}, the flags "
            f"describe {list(dataset.image_shape)}",
        )
        return
    truth = dataset.render_array(examples.factors)
    error = np.abs(images - truth).max(axis=(1, 2, 3))
    wrong = error > TOLERANCE
    if wrong.any():
        reason = _describe_images(split, wrong, "not those of their factors")
        yield "pixels", f"{reason}, off by {error[wrong][0]:.3g}"


def _describe_images(split: str, wrong: np.ndarray, what: str) -> str:
    return (
        f"{wrong.sum()} {split} images are {what}, the first is number "
        f"{np.flatnonzero(wrong)[0]}"
    )


def _count_duplicates(factors: np.ndarray) -> int:
    return len(factors) - len({str(row) for row in factors.tolist()})
