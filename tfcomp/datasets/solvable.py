"""Combinations that training determines, and the share that it covers.

`tfcomp.datasets.certificate` defines "determined" (or certified), of quantities
that can be read off an image. An absent factor, as of a stripe, adds nothing,
and an image of no factor is blank. A decoder that is a free
function of each pixel cannot know a pixel that never changes, and none can know
a value that never occurs.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.datasets.certificate import Certificate, certify
from tfcomp.datasets.certificate_fit import explain_images, measure_noise
from tfcomp.datasets.dataset import Dataset, choose_rows

MAX_ORDER = 3
Certificates = Mapping[int, Certificate | None]
SUM = 0.99  # R^2 from which training images count as sums
# Training images that are compared with sums, and numbers of all of them.
MAX_EXPLAINED = 1024
MAX_NUMBERS = 2**24
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
    train, rows = _list_training(dataset), space.to_index(every)
    if (train < 0).any():  # nothing at all is known without an image
        train = np.vstack([train, np.full(len(space), -1)])
    orders = range(1, min(MAX_ORDER, len(space)) + 1)
    return {order: certify(train, rows, order) for order in orders}


def _list_training(dataset: Dataset) -> np.ndarray:
    """Returns distinct training combinations as classes, int [n, F]."""
    return np.unique(dataset.space.to_index(dataset.splits.train), axis=0)


def summarize_certificates(
    dataset: Dataset, certificates: Certificates
) -> dict[str, dict[str, float | None]]:
    """Returns the numbers of `metrics.json`, by order.

    `certified` is the share of held-out combinations that are certified, and
    `missing_rank` the fewest further images that certify all combinations;
    `noise_mean` and `noise_max` are the variance of a certified sum, in units
    of that of an image. None where nothing is held out or was computed.
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


def explain_training(dataset: Dataset) -> dict[str, float]:
    """Returns R^2 of training images from the others, by order from 1 to 3.

    Of orders at which this can be told (`explain_images`).
    """
    train = dataset.space.to_index(dataset.splits.train)
    rows = np.unique(train, axis=0, return_index=True)[1]
    limit = min(MAX_EXPLAINED, MAX_NUMBERS // math.prod(dataset.image_shape))
    rows = rows[choose_rows(len(rows), max(1, limit))]
    images, explained = dataset.render_array(dataset.splits.train[rows]), {}
    for order in range(1, min(MAX_ORDER, len(dataset.space)) + 1):
        r2 = explain_images(train[rows], images, order)
        if r2 is None:
            break
        explained[str(order)] = r2
    return explained


def describe_order(explained: Mapping[str, float]) -> str:
    """Says at which order training images are sums of effects."""
    shares = [f"{r2:.2g} at order {order}" for order, r2 in explained.items()]
    if not shares:
        return ""
    is_sum = [order for order, r2 in explained.items() if r2 >= SUM]
    verdict = f"no sums of effects up to order {list(explained)[-1]}"
    if is_sum:
        verdict = f"sums of effects of order {is_sum[0]}"
    return (
        f"{verdict} (R2 of training images from the others: "
        f"{', '.join(shares)})"
    )


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
            notes = [f"images missing: {missing:,}"] if missing else []
            notes += [describe_noise(found)] if describe_noise(found) else []
            note = f" ({'; '.join(notes)})" if notes else ""
            parts.append(f"{share:.1%} at order {order}{note}")
    return ", ".join(parts)


def describe_noise(found: Mapping[str, float | None]) -> str:
    """Formats the variance of determined sums; empty if it is unknown."""
    mean, most = found.get("noise_mean"), found.get("noise_max")
    if mean is None or most is None:
        return ""
    text = f"variance {mean:.2g} times an image's"
    is_even = f"{mean:.2g}" == f"{most:.2g}"
    return text if is_even else f"{text}, at most {most:.2g}"


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
