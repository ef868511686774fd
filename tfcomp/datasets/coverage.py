"""How much of a data set training covers: always to be told with a split.

A decoder that is a free function of each pixel cannot know a pixel that never
changes in training, and no decoder can know a value that never occurs.
"""

import numpy as np

from tfcomp.datasets.dataset import Dataset, choose_rows

# Images that are looked at, of training and of the grid.
MAX_IMAGES = 4096
# Of the range of gray values: less is no change of a pixel.
CHANGE = 1 / 255


def measure_coverage(dataset: Dataset) -> dict[str, float]:
    """The shares of what there is that training covers, each 0 to 1.

    Returns:
        `combinations`: of grid points, those that training contains.
        `values`: of the values of a factor, those that training contains,
        averaged over factors.
        `pixels`: of the pixels that change over the grid, those that change
        in training. Of a large data set, a random part is looked at.
    """
    space, splits = dataset.space, dataset.splits
    table = space.to_index(splits.train)
    values = [
        len(np.unique(column[column >= 0])) / factor.size
        for column, factor in zip(table.T, space, strict=True)
    ]
    changes = _find_changes(dataset, splits.train)
    anywhere = _find_changes(dataset, splits.grid) | changes
    seen = splits.is_id & ~splits.is_test
    return {
        "combinations": float(np.mean(seen)),
        "values": float(np.mean(values)),
        "pixels": float(changes.sum() / max(anywhere.sum(), 1)),
    }


def _find_changes(dataset: Dataset, table: np.ndarray) -> np.ndarray:
    """Which pixels have several values in the images of a table, [H, W, C]."""
    table = table[choose_rows(len(table), MAX_IMAGES)]
    low = np.full(dataset.image_shape, np.inf)
    high = np.full(dataset.image_shape, -np.inf)
    for part in np.array_split(table, len(table) // 256 + 1):
        images = dataset.render_array(part)
        low = np.minimum(low, images.min(axis=0, initial=np.inf))
        high = np.maximum(high, images.max(axis=0, initial=-np.inf))
    return high - low > CHANGE
