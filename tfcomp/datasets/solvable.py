"""Combinations that training determines, and the share that it covers.

`tfcomp.datasets.certificate` defines "determined". A decoder that is a free
function of each pixel cannot know a pixel that never changes, and none can know
a value that never occurs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.datasets.certificate import Certificate, certify
from tfcomp.datasets.dataset import Dataset, choose_rows

MAX_ORDER = 3
Certificates = Mapping[int, Certificate | None]
# Number of images of training and of the grid whose pixels are compared.
MAX_IMAGES = 4096
# A pixel is covered if training has this share of its range over the data.
# Pixels with a smaller range than `CHANGE` do not count.
RANGE_SHARE = 0.5
CHANGE = 1 / 255


def certify_dataset(
    dataset: Dataset, points: np.ndarray | None = None
) -> dict[int, Certificate | None]:
    """Returns certificates of points [n, F], by order from 1 to 3.

    By default of all existing combinations. Each counts as the nearest one of
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
    """Returns the numbers of `metrics.json`, by order.

    `certified` is the share of held-out combinations that are certified, and
    `missing_rank` the fewest further images that certify all combinations;
    None where nothing is held out or was computed.
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
    """Returns the images to add: values or levels by factor."""
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
    """Formats the shares, as `100.0% at order 1, 0.0% at order 2`."""
    parts = []
    for order, found in summary.items():
        if (share := found["certified"]) is not None:
            missing = found["missing_rank"]
            note = f" (images missing: {missing:,})" if missing else ""
            parts.append(f"{share:.1%} at order {order}{note}")
    return ", ".join(parts)


def mark_certified(dataset: Dataset, certificate: Certificate) -> np.ndarray:
    """Returns 1, 0 or NaN (not held out) for each point of the grid, [n]."""
    is_ood = dataset.splits.all.is_ood
    marks = np.where(is_ood, certificate.certified, np.nan)
    return dataset.select_points(marks)


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
    """Returns the smallest and largest value of pixels, [H, W, C] each."""
    table = table[choose_rows(len(table), MAX_IMAGES)]
    low = np.full(dataset.image_shape, np.inf)
    high = np.full(dataset.image_shape, -np.inf)
    for part in np.array_split(table, len(table) // 256 + 1):
        images = dataset.render_array(part)
        low = np.minimum(low, images.min(axis=0, initial=np.inf))
        high = np.maximum(high, images.max(axis=0, initial=-np.inf))
    return low, high
