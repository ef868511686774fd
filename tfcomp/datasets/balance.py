"""Training images of rare values, drawn more often than others."""

import numpy as np

from tfcomp.datasets.factors import FactorSpace

MOST = 64  # times that an image is drawn in a pass


def repeat_rare(space: FactorSpace, table: np.ndarray) -> np.ndarray:
    """Rows of a table in which every value is about as frequent as others.

    An image is repeated as often as its rarest value is rarer than the values
    of that factor are on average, at most `MOST` times. Where all values are
    about equally frequent, every row comes once.

    Args:
        space: Of the factors.
        table: Factor values [n, F]; an absent one (NaN) is not rare.
    """
    times = np.ones(len(table))
    for column, factor in enumerate(space):
        present = ~np.isnan(table[:, column])
        if not present.any():
            continue
        index = factor.to_index(table[present, column])
        counts = np.bincount(index)
        average = counts.sum() / np.count_nonzero(counts)
        times[present] = np.maximum(times[present], average / counts[index])
    times = np.clip(np.rint(times), 1, MOST).astype(int)
    return np.repeat(np.arange(len(table)), times)
