"""What can be wrong with the examples of a data set.

They are compared with the rules of a held-out region and with what the flags
describe. Every check yields a reason in one line for each anomaly.
"""

from collections.abc import Iterator

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.materialized import Examples

# Largest difference of a pixel from rendering it again: another processor may
# round otherwise.
TOLERANCE = 1e-5
Reasons = Iterator[str]


def find_anomalies(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """Runs all checks on the training and the held-out examples.

    Yields:
        The name of a check that failed, and the reason in one line.
    """
    checks = {
        "leak": check_leaks,
        "splits": check_splits,
        "duplicates": check_duplicates,
        "coverage": check_coverage,
        "pixels": check_pixels,
    }
    for name, check in checks.items():
        for reason in check(dataset, train, ood):
            yield name, reason


def check_leaks(dataset: Dataset, train: Examples, ood: Examples) -> Reasons:
    """No training example lies in the region, every held-out one does."""
    region = dataset.region
    for split, examples, place, wrong in (
        ("training", train, "in", region.contains(train.factors)),
        ("held-out", ood, "outside", ~region.contains(ood.factors)),
    ):
        if wrong.any():
            first = examples.factors[wrong][0].tolist()
            yield (
                f"{wrong.sum()} {split} examples lie {place} the region "
                f"{region.spec}, the first at {first}"
            )


def check_splits(dataset: Dataset, train: Examples, ood: Examples) -> Reasons:
    """The splits have the examples that the flags describe."""
    splits, every = dataset.splits, dataset.splits.all
    for split, found, expected in (
        ("training", train.factors, splits.train),
        ("held-out", ood.factors, every.factors[every.is_ood]),
    ):
        if len(found) != len(expected):
            yield (
                f"{len(found)} {split} examples, the flags describe "
                f"{len(expected)}"
            )
            continue
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        wrong = np.flatnonzero(~same.all(axis=1))
        if wrong.size:
            yield (
                f"{wrong.size} {split} examples are not where the flags "
                f"describe them, the first is number {wrong[0]} at "
                f"{found[wrong[0]].tolist()}"
            )


def check_duplicates(dataset: Dataset, train: Examples, _: Examples) -> Reasons:
    """No combination is there more often than the flags describe.

    A rotated digit has its upright image twice, at 0 and at 360 degrees.
    """
    found = _count_duplicates(train.factors)
    expected = _count_duplicates(dataset.splits.train)
    if found > expected:
        yield (
            f"{found} training examples repeat another one, the flags "
            f"describe {expected}"
        )


def check_coverage(dataset: Dataset, train: Examples, _: Examples) -> Reasons:
    """Every factor value that ID has occurs in training.

    Otherwise an OOD error may come from a value that was never seen, and is
    no failure to compose. A gap holds back values altogether, and says so.
    """
    space, every = dataset.space, dataset.splits.all
    possible = space.to_index(every.factors[~every.is_ood])
    seen = space.to_index(train.factors)
    for column, factor in enumerate(space):
        missing = np.setdiff1d(possible[:, column], seen[:, column])
        if missing.size:
            first = factor.values()[missing[0]]
            yield (
                f"{missing.size} values of {factor.name} never occur in "
                f"training, the first is {first:g}"
            )


def check_pixels(dataset: Dataset, train: Examples, ood: Examples) -> Reasons:
    """Images are finite, from 0 to 1, not blank, and those of the factors."""
    yield from _check_images(dataset, "training", train)
    yield from _check_images(dataset, "held-out", ood)


def _check_images(dataset: Dataset, split: str, examples: Examples) -> Reasons:
    images = examples.images
    if not images.size:
        return
    infinite = ~np.isfinite(images).all(axis=(1, 2, 3))
    if infinite.any():
        yield _describe_images(split, infinite, "not finite")
        return
    low, high = images.min(), images.max()
    if low < 0 or high > 1:
        yield f"{split} pixels must be from 0 to 1, found {low:g} to {high:g}"
    blank = np.ptp(images, axis=(1, 2, 3)) == 0
    if blank.any():
        yield _describe_images(split, blank, "blank")
    if images.shape[1:] != dataset.image_shape:
        yield (
            f"{split} images are {list(images.shape[1:])}, the flags "
            f"describe {list(dataset.image_shape)}"
        )
        return
    truth = dataset.render_array(examples.factors)
    error = np.abs(images - truth).max(axis=(1, 2, 3))
    wrong = error > TOLERANCE
    if wrong.any():
        reason = _describe_images(split, wrong, "not those of their factors")
        yield f"{reason}, off by {error[wrong][0]:.3g}"


def _describe_images(split: str, wrong: np.ndarray, what: str) -> str:
    return (
        f"{wrong.sum()} {split} images are {what}, the first is number "
        f"{np.flatnonzero(wrong)[0]}"
    )


def _count_duplicates(factors: np.ndarray) -> int:
    return len(factors) - len({str(row) for row in factors.tolist()})
