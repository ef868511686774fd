"""How often batches show each row of the training table."""

import re

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import FactorSpace

SHARES = 16  # of an image of mean weight in a pass, with weights
MAX_SHARES = 2**22
MAX_REPEATS = 64  # of an image in a pass, with `--balance`


def weigh(table: np.ndarray, space: FactorSpace, pairs: str) -> np.ndarray:
    """Returns the weights of rows of factor values, [n], at most 1 each.

    A pair `a,b:s` gives exp(-(a - b)^2 / (2 s^2)), of values that are scaled
    to 0..1; several pairs (`a,b:.4;a,c:.2`) are multiplied. Absent values
    (NaN) count as equal to any.

    Raises:
        ConfigError: For an invalid pair.
    """
    scales = np.array([max(f.high - f.low, 1e-30) for f in space])
    unit = (table - [f.low for f in space]) / scales
    weights = np.ones(len(table))
    for pair in pairs.split(";"):
        match = re.fullmatch(r"([^,:]+),([^,:]+):(\d*\.?\d+)", pair.strip())
        names = match.groups()[:2] if match else ()
        width = float(match[3]) if match else 0.0
        if not {*names} <= {*space.names} or len({*names}) < 2 or not width:
            rule = f"must be a,b:0.4 for two of {', '.join(space.names)}"
            raise ConfigError("correlation", rule, pair)
        first, second = (unit[:, space.names.index(name)] for name in names)
        apart = np.nan_to_num(first - second)
        weights *= np.exp(-np.square(apart) / (2 * width**2))
    return weights


def describe_weights(weights: np.ndarray) -> str:
    """Says how many images of equal weight are as good (Kish 1965)."""
    number = weights.sum() ** 2 / np.square(weights).sum()
    count = f"{number:,.1f} of {len(weights):,} training images"
    return f"like {count} of equal weight, (sum w)^2 / sum w^2"


def repeat_by_weight(weights: np.ndarray) -> np.ndarray:
    """Returns row i about w_i / mean(w) * `SHARES` times, sorted.

    Numbers are rounded up or down such that none adds up to more than one
    image; a pass over the table is `SHARES` times as long.
    """
    ends = np.cumsum(weights) / np.sum(weights)
    count = max(min(SHARES * len(weights), MAX_SHARES), len(weights))
    places = (np.arange(count) + 0.5) / count
    rows = np.searchsorted(ends, places)
    return np.minimum(rows, len(weights) - 1)


def repeat_rare(space: FactorSpace, table: np.ndarray) -> np.ndarray:
    """Returns rows of a table, repeated so that values are about as frequent.

    A row is repeated as often as its rarest value is rarer than the average
    value of the factor, at most `MAX_REPEATS` times. Absent values (NaN) are
    not rare.
    """
    times = np.ones(len(table))
    for index in space.to_index(table).T:
        present = index >= 0
        counts = np.bincount(index[present])
        average = present.sum() / max(np.count_nonzero(counts), 1)
        rarity = average / counts[index[present]]
        times[present] = np.maximum(times[present], rarity)
    repeats = np.clip(np.rint(times), 1, MAX_REPEATS).astype(int)
    return np.repeat(np.arange(len(table)), repeats)
