"""How much of a data set training covers: always to be told with a split.

A decoder that is a free function of each pixel cannot know a pixel that never
changes in training, and no decoder can know a value that never occurs.
"""

import numpy as np

from tfcomp.datasets.dataset import Dataset, choose_rows

# Images that are looked at, of training and of the grid.
MAX_IMAGES = 4096
# Of the range of a pixel over the data: one that reaches less in training has
# not been seen at work. Less than `CHANGE` of the gray values is no range.
RANGE_SHARE = 0.5
CHANGE = 1 / 255


def measure_coverage(dataset: Dataset) -> dict[str, float]:
    """The shares of what there is that training covers, each 0 to 1.

    Returns:
        `combinations`: of all combinations that exist, those that training
        contains, whichever of them are scored.
        `values`: of the values of a factor, those that training contains,
        averaged over factors.
        `pixels`: of the pixels that change over the data, those whose range in
        training is at least half of that. Of a large data set, a random part
        is looked at.
    """
    space, splits = dataset.space, dataset.splits
    table = space.to_index(splits.train)
    values = [
        len(np.unique(column[column >= 0])) / factor.size
        for column, factor in zip(table.T, space, strict=True)
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
