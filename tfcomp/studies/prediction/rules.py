"""Does a number predict the OOD error? The rules of docs/predict.md.

The exploring half gives a number its sign. It proposes the number if, at 95 %,
three statistics are positive: Kendall's tau over all pairs of networks, the
smallest tau over pairs that share up to two hyperparameters, and the gain in a
prediction across decoders. The half that was held back confirms it by the same
statistics, at 95 % for all proposed numbers together (Bonferroni).

Intervals come from the jackknife (Quenouille 1956) over blocks of whole
settings, since the seeds of one setting are not independent.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tfcomp.studies.prediction.networks import (
    ALL_POINTS,
    DECODER,
    ID_ERROR,
    Array,
    Key,
    Networks,
)

LEVEL = 0.95
BLOCKS = 20
MAX_SHARED = 2  # hyperparameters that both networks of a pair have
RIDGE = 1e-2  # of the number of networks; features have unit variance
Row = dict[str, Any]


class Order:
    """Statistics of the order of networks, each as an array [1 + b].

    The first value is of all networks, the others without one of the blocks.
    """

    def __init__(self, networks: Networks) -> None:
        self.networks = networks
        cells, table = networks.cells, networks.table
        self._signs = compare(networks.outcome)
        self._members = np.eye(cells.max() + 1)[cells]  # [n, c]
        count = min(BLOCKS, cells.max() + 1)
        dealt = np.random.default_rng(0).permutation(cells.max() + 1) % count
        self._blocks = np.eye(count)[dealt]  # [c, b]
        left_in = 1 - (self._members @ self._blocks).T
        self.left_in = np.concatenate([np.ones((1, len(cells))), left_in])
        decoders = table[DECODER].to_numpy()
        self._decoders = [decoders == name for name in np.unique(decoders)]
        self._shared = self._list_shared()
        sizes = self._members.sum(axis=0)
        self._weights = self._sum_pairs(np.outer(sizes, sizes) - np.diag(sizes))

    def _list_shared(self) -> dict[tuple[str, ...], Array]:
        """Returns which cells share hyperparameters, [c, c], by their names."""
        names = self.networks.hyperparameters
        first = np.unique(self.networks.cells, return_index=True)[1]
        columns = self.networks.table[names].to_numpy()[first].T
        same = columns[:, :, None] == columns[:, None, :]
        by_name = dict(zip(names, same, strict=True))
        whole = np.ones_like(same[0])
        return {
            shared: np.prod([whole, *map(by_name.get, shared)], axis=0)
            for shared in list_shared(names)
        }

    def compute_taus(self, values: Array) -> dict[tuple[str, ...], Array]:
        """Returns Kendall's tau with the outcome, by what pairs share.

        A tie is no agreement. Leaves out what no pair shares.
        """
        signs = compare(values) * self._signs
        sums = self._sum_pairs(self._members.T @ signs @ self._members)
        with np.errstate(invalid="ignore", divide="ignore"):
            taus = np.where(self._weights > 0, sums / self._weights, np.nan)
        pairs = zip(self._shared, taus, strict=True)
        return {shared: tau for shared, tau in pairs if np.isfinite(tau[0])}

    def _sum_pairs(self, table: Array) -> Array:
        """Sums a table [c, c] over pairs by what they share, [s, 1 + b]."""
        tables = np.stack(list(self._shared.values())) * table
        sums = self._blocks.T @ tables @ self._blocks  # [s, b, b]
        left_out = sums.sum(axis=1) + sums.sum(axis=2)
        left_out -= np.diagonal(sums, axis1=1, axis2=2)
        total = sums.sum(axis=(1, 2))[:, None]
        return total - np.pad(left_out, ((0, 0), (1, 0)))

    def compute_transfer(self, features: Array) -> Array:
        """Returns the mean tau within a decoder, predicted from the others.

        The prediction is a ridge regression on features [n, d].
        """
        outcome = self.networks.outcome
        taus = []
        for inside in self._decoders:
            if inside.sum() < 2 or inside.all():
                continue
            weights = self.left_in * ~inside
            found = _predict(features, outcome, weights)[:, inside]
            signs = compare(found) * compare(outcome[inside])
            kept = self.left_in[:, inside]
            sums = (kept[:, None, :] @ signs @ kept[:, :, None])[:, 0, 0]
            count = kept.sum(axis=1)
            taus.append(sums / (count * (count - 1)))
        return np.mean(taus, axis=0) if taus else np.full(1, np.nan)

    def compute_gain(self, key: Key, values: Array) -> Array:
        """Returns how much a number adds to the prediction across decoders.

        Hyperparameters, the ID error at the same time and the same number
        before training are given.
        """
        numbers = self.networks.numbers
        features = [make_features(self.networks)]
        for other in ((ID_ERROR, key[1]), (key[0], 0.0)):
            if other != key and other in numbers:
                given = pd.Series(self.networks.get(other))
                features.append(
                    given.fillna(given.mean()).fillna(0.0).to_numpy()
                )
        less = np.column_stack(features)
        more = np.column_stack([less, values])
        return self.compute_transfer(more) - self.compute_transfer(less)


def list_shared(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns all sets of at most `MAX_SHARED` names, the empty one first."""
    sizes = range(min(MAX_SHARED, len(names) - 1) + 1)
    return [s for size in sizes for s in itertools.combinations(names, size)]


def compare(values: Array) -> Array:
    """Returns the signs of all differences, [..., n, n]."""
    return np.sign(values[..., :, None] - values[..., None, :])


def make_features(networks: Networks) -> Array:
    """Returns the hyperparameters but the decoder, a column a value, [n, d]."""
    columns = [
        networks.table[name].to_numpy()[:, None]
        == np.unique(networks.table[name])
        for name in networks.hyperparameters
        if name != DECODER
    ]
    return np.concatenate(columns, axis=1).astype(float)


def _predict(features: Array, outcome: Array, weights: Array) -> Array:
    """Predicts all networks from those with weight 1, [w, n] for [w, n].

    The result lacks an offset, which no order depends on.
    """
    sizes = weights.sum(axis=1)[:, None]
    x, y = features - features.mean(axis=0), outcome - outcome.mean()
    products = np.einsum("ni,nj->nij", x, np.column_stack([x, y]))
    mean, mean_y = weights @ x / sizes, weights @ y / sizes[:, 0]
    moments = np.tensordot(weights, products, 1) / sizes[:, :, None]
    covariance = moments[:, :, :-1] - mean[:, :, None] * mean[:, None, :]
    with_y = moments[:, :, -1] - mean * mean_y[:, None]
    scale = np.sqrt(np.einsum("wii->wi", covariance).clip(0))
    scale = np.where(scale > 1e-7, scale, np.inf)
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    matrix = correlation + RIDGE * np.eye(x.shape[1])
    slopes = np.linalg.solve(matrix, (with_y / scale)[:, :, None])[:, :, 0]
    return (slopes / scale) @ x.T


def judge(
    networks: Networks,
    keys: Sequence[Key],
    signs: Mapping[Key, float] | None = None,
    confirm: Collection[Key] = (),
) -> Iterator[Row]:
    """Yields the statistics of numbers, one after another.

    Args:
        signs: The directions that the other half has found; by default those
            of tau.
        confirm: The numbers to confirm, which share the level.
    """
    whole = Order(networks)
    for key in keys:
        level = 1 - (1 - LEVEL) / len(confirm) if key in confirm else LEVEL
        known = np.isfinite(networks.get(key))
        order = whole if known.all() else Order(networks.select(known))
        values = order.networks.get(key)
        sign = None if signs is None else signs[key]
        yield judge_one(order, key, values, sign, level)


def judge_one(
    order: Order, key: Key, values: Array, sign: float | None, level: float
) -> Row:
    """Returns the statistics of a number with these values, [n]."""
    taus = order.compute_taus(values)
    if sign is None:
        sign = float(np.sign(taus[()][0])) or 1.0
    taus = {names: sign * tau for names, tau in taus.items()}
    given = min(taus, key=lambda names: taus[names][0])
    statistics = {
        "tau": taus[()],
        "conditional_tau": np.nanmin(list(taus.values()), axis=0),
        "gain": order.compute_gain(key, values),
    }
    row: Row = {
        "measure": key[0],
        "time": key[1],
        "peeks": key[0].startswith(ALL_POINTS),
        "sign": sign,
        "networks": len(values),
        "given": " ".join(given),
        "passes": True,
    }
    for name, statistic in statistics.items():
        low, high = compute_interval(statistic, level)
        row["passes"] &= low > 0
        ends = {f"{name}_low": max(low, -1.0), f"{name}_high": min(high, 1.0)}
        row |= {name: float(statistic[0]), **ends}
    return row


def compute_interval(
    values: Array, level: float = LEVEL
) -> tuple[float, float]:
    """Returns the jackknife interval of a statistic [1 + b]."""
    left_out = values[1:]
    count = len(left_out)
    if count < 2 or not np.isfinite(values).all():
        return -np.inf, np.inf
    squares = (count - 1) / count * (left_out - left_out.mean()) ** 2
    width = float(stats.t.ppf((1 + level) / 2, count - 1))
    half = width * float(np.sqrt(squares.sum()))
    return float(values[0]) - half, float(values[0]) + half
