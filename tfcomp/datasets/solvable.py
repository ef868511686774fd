"""Which held-out combinations of a data set follow from its training set.

`tfcomp.datasets.certificate` has what that means. And how much of the data
training covers: a decoder that is a free function of each pixel cannot know a
pixel that never changes, and none can know a value that never occurs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.datasets.certificate import Certificate, certify
from tfcomp.datasets.dataset import Dataset, choose_rows

MAX_ORDER = 3
Certificates = Mapping[int, Certificate | None]
# Images that are looked at, of training and of the grid.
MAX_IMAGES = 4096
# Of the range of a pixel over the data: one that reaches less in training has
# not been seen at work. Less than `CHANGE` of the gray values is no range.
RANGE_SHARE = 0.5
CHANGE = 1 / 255


def certify_dataset(
    dataset: Dataset, points: np.ndarray | None = None
) -> dict[int, Certificate | None]:
    """Certificates of points [n, F], by order from 1 to 3 or all factors.

    By default of all combinations that exist. Each counts as the nearest one of
    the grid. None where the equations would take too much memory.
    """
    space = dataset.space
    every = dataset.splits.all.factors if points is None else points
    train = np.unique(space.to_index(dataset.splits.train), axis=0)
    rows = space.to_index(every)
    orders = range(1, min(MAX_ORDER, len(space)) + 1)
    return {order: certify(train, rows, order) for order in orders}


def summarize_certificates(
    dataset: Dataset, certificates: Certificates
) -> dict[str, dict[str, float | None]]:
    """Numbers for `metrics.json`, by order.

    These are `certified`, the share of the held-out combinations that are
    (None if nothing is held out), and `missing_rank`, the fewest further
    images that certify all combinations; None where they were not computed.
    """
    is_ood = dataset.splits.all.is_ood
    summary: dict[str, dict[str, float | None]] = {}
    for order, found in certificates.items():
        share = missing = None
        if found is not None:
            missing = len(found.images)
            if is_ood.any():
                share = float(found.certified[is_ood].mean())
        summary[str(order)] = {"certified": share, "missing_rank": missing}
    return summary


def list_images(
    dataset: Dataset, certificate: Certificate | None
) -> list[dict[str, Any]]:
    """The images to add: factor to value, or to its name if it has one."""
    if certificate is None:
        return []
    space = dataset.space
    table = dataset.splits.all.factors[certificate.images]
    return [
        {
            factor.name: factor.describe(value) if factor.names else value
            for factor, value in zip(space, row, strict=True)
        }
        for row in table.tolist()
    ]


def describe_certificates(
    summary: Mapping[str, Mapping[str, float | None]],
) -> str:
    """One line on the shares, as `100.0% at order 1, 0.0% at order 2`."""
    parts = []
    for order, found in summary.items():
        if (share := found["certified"]) is not None:
            missing = found["missing_rank"]
            note = f" (images missing: {missing:,})" if missing else ""
            parts.append(f"{share:.1%} at order {order}{note}")
    return ", ".join(parts)


def mark_certified(dataset: Dataset, certificate: Certificate) -> np.ndarray:
    """Of `splits.grid`: 1 if certified, 0 if not, NaN if not held out, [n]."""
    splits, space = dataset.splits, dataset.space
    marks = np.where(splits.all.is_ood, certificate.certified, np.nan)
    if splits.existing is None:
        return marks
    keys, asked = map(space.to_place, (splits.all.factors, splits.grid))
    order = np.argsort(keys)
    return marks[order[np.searchsorted(keys[order], asked)]]


def measure_coverage(dataset: Dataset) -> dict[str, float]:
    """The shares of what there is that training covers, each 0 to 1.

    These are `combinations`, of all that exist, whichever are scored; `values`
    of a factor, averaged over factors; and `pixels`, of those that change over
    the data, those whose range in training is at least half of that. Of a
    large data set, a random part is looked at.
    """
    space, splits = dataset.space, dataset.splits
    columns = space.to_index(splits.train).T
    values = [
        len(np.unique(column[column >= 0])) / factor.size
        for column, factor in zip(columns, space, strict=True)
    ]
    low, high = _find_range(dataset, splits.train)
    other_low, other_high = _find_range(dataset, splits.all.factors)
    whole = np.maximum(high, other_high) - np.minimum(low, other_low)
    varies = whole > CHANGE
    is_seen = varies & (high - low >= RANGE_SHARE * whole)
    seen = ~splits.all.is_ood & ~splits.all.is_test
    return {
        "combinations": float(np.mean(seen)),
        "values": float(np.mean(values)),
        "pixels": float(is_seen.sum() / max(varies.sum(), 1)),
    }


def _find_range(
    dataset: Dataset, table: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest value of every pixel over a table, [H, W, C] each."""
    table = table[choose_rows(len(table), MAX_IMAGES)]
    low = np.full(dataset.image_shape, np.inf)
    high = np.full(dataset.image_shape, -np.inf)
    for part in np.array_split(table, len(table) // 256 + 1):
        images = dataset.render_array(part)
        low = np.minimum(low, images.min(axis=0, initial=np.inf))
        high = np.maximum(high, images.max(axis=0, initial=-np.inf))
    return low, high
