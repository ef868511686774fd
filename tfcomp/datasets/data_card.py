"""Cards of datasets: factors, sizes, license, and SHA-256 of the images.

The hash covers the images of all combinations, held out or not, in the order of
the grid (the last factor changes fastest), each as rows, columns and channels
of `round(255 * pixel)`, uint8.
"""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor

CARD_FILE = "README.md"
TEMPLATE = Path(__file__).with_name("data_card.md")


def hash_images(dataset: Dataset) -> str:
    """Returns the SHA-256 of the images of all combinations, in hex."""
    digest = hashlib.sha256()
    for images in dataset.render_parts(dataset.splits.all.factors):
        digest.update(np.rint(255 * images).astype(np.uint8).tobytes())
    return digest.hexdigest()


def count_bytes(dataset: Dataset) -> int:
    """Returns the bytes of all images as uint8."""
    return len(dataset.splits.all.factors) * math.prod(dataset.image_shape)


def describe_factor(factor: Factor) -> str:
    """Describes a factor, as `x: 28 values from 0 to 27 px`."""
    values = factor.values()
    if factor.categorical:
        names = map(factor.describe, values.tolist())
        return f"{factor.name}: {', '.join(names)}"
    first, last = map(factor.describe, values[[0, -1]].tolist())
    ends = f"{first} to {last} {factor.unit}".strip()
    text = f"{factor.name}: {factor.size} values from {ends}"
    if factor.periodic:
        text += f", periodic, {factor.describe_period()}"
    return text


def format_data_card(dataset: Dataset, settings: Mapping[str, Any]) -> str:
    """Formats the README.md of a dataset on disk."""
    num_ood = int(dataset.splits.all.is_ood.sum())
    counts = {"train": len(dataset.splits.train), "ood": num_ood}
    # Size categories of model hubs, by the number of digits.
    sizes = ["1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"]
    digits = min(len(str(sum(counts.values()))), 7)
    template = jinja2.Template(
        TEMPLATE.read_text("utf-8"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return template.render(
        dataset=dataset,
        factors=map(describe_factor, dataset.space),
        counts=counts,
        settings=settings,
        size=sizes[digits - 4] if digits > 3 else "n<1K",
        num_bytes=count_bytes(dataset),
        sha256=hash_images(dataset),
    )
