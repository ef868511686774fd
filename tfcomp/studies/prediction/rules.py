"""Tests whether a number predicts the OOD error (rules: docs/predict.md).

Statistics of a number are Kendall's tau over all pairs of networks, the
smallest tau over pairs that share up to two hyperparameters, and the gain in a
prediction across decoders. A second half of the networks, which was held back,
confirms what the first one proposes (Bonferroni).

Intervals come from the jackknife (Quenouille 1956) over blocks of whole
settings, since the seeds of one setting are not independent. Statistics are
arrays [1 + b]: of all networks, then without each block.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tfcomp.config.quiet import show_progress
from tfcomp.studies.prediction import early_numbers
from tfcomp.studies.prediction.early_numbers import DECODER, Array, Networks

LEVEL = 0.95
BLOCKS = 20
RIDGE = np.array([1e-2])  # the penalty for each network
STRENGTHS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
DRAWS = 20
Row = dict[str, Any]


class Order:
    """Compares orders of networks with the order by their outcome."""

    def __init__(self, networks: Networks) -> None:
        self.networks, names = networks, networks.hyperparameters
        blocks = early_numbers.deal_folds(networks.cells, BLOCKS, 0)
        self.left_in = np.arange(-1, blocks.max() + 1)[:, None] != blocks
        self._signs = compare(networks.outcome)
        codes = networks.table[names].apply(lambda c: pd.factorize(c)[0])
        same = {n: codes[n].to_numpy()[:, None] == [*codes[n]] for n in names}
        apart = ~np.eye(len(codes), dtype=bool)
        self._shared = {
            shared: np.logical_and.reduce([apart, *(same[n] for n in shared)])
            for size in range(3)
            for shared in combinations(names, size)
        }
        self._counts = self._sum_pairs(np.ones_like(self._signs))

    def compute_taus(self, values: Array) -> dict[tuple[str, ...], Array]:
        """Returns Kendall's tau with the outcome, by what pairs share."""
        sums = self._sum_pairs(compare(values) * self._signs)
        with np.errstate(invalid="ignore", divide="ignore"):
            taus = dict(zip(self._shared, sums / self._counts, strict=True))
        return {names: tau for names, tau in taus.items() if tau[0] == tau[0]}

    def _sum_pairs(self, table: Array) -> Array:
        """Sums a table [n, n] over pairs by what they share, [s, 1 + b]."""
        left_in = self.left_in.astype(np.float32)  # sums of integers are exact
        masks = self._shared.values()
        sums = [((left_in @ (table * m)) * left_in).sum(axis=1) for m in masks]
        return np.array(sums, float)

    def compute_transfer(self, features: Array) -> Array:
        """Returns the mean tau within a decoder, predicted from the others."""
        outcome, taus = self.networks.outcome, []
        decoders = self.networks.table[DECODER].to_numpy()
        for inside in (decoders == name for name in np.unique(decoders)):
            row = []
            for kept in self.left_in:
                old, new = kept & ~inside, kept & inside
                x, y = features[old], outcome[old]
                found = early_numbers.fit_ridges(x, y, features[new], RIDGE)
                agreement = compare(found[:, 0]) * compare(outcome[new])
                count = max(len(found) * (len(found) - 1), 1)
                row.append(agreement.sum(dtype=float) / count)
            taus.append(row)
        return np.mean(taus, axis=0)

    def compute_gain(self, key: str, values: Array) -> Array:
        """Returns how much a number adds to given ones, across decoders."""
        time, _, name = key.partition("|")
        features, table = [make_features(self.networks)], self.networks.table
        for other in (f"{time}|{early_numbers.ID_ERROR}", f"0|{name}"):
            if other != key and other in table:
                features.append(table[other].to_numpy()[:, None])
        less = np.hstack(features)
        more = np.column_stack([less, values])
        return self.compute_transfer(more) - self.compute_transfer(less)

    def judge(
        self, key: str, values: Array, sign: float | None, level: float
    ) -> Row:
        """Returns the statistics of a number; the default sign is of tau."""
        name, time = early_numbers.split_number(key)
        taus = self.compute_taus(values)
        sign = sign or float(np.sign(taus[()][0])) or 1.0
        taus = {names: sign * tau for names, tau in taus.items()}
        given, _ = min(taus.items(), key=lambda pair: pair[1][0])
        row: Row = {
            "measure": name,
            "time": time,
            "peeks": name.startswith("all."),
            "sign": sign,
            "networks": len(values),
            "given": " ".join(given),
            "passes": True,
        }
        statistics = {
            "tau": taus[()],
            "conditional_tau": np.nanmin(list(taus.values()), axis=0),
            "gain": self.compute_gain(key, values),
        }
        for name, statistic in statistics.items():
            low, high = compute_interval(statistic, level)
            row[name] = float(statistic[0])
            row |= {f"{name}_low": max(low, -1.0)}
            row |= {f"{name}_high": min(high, 1.0)}
            row["passes"] &= low > 0
        return row


def compare(values: Array) -> Array:
    """Returns the signs of all differences, [n, n]."""
    return np.sign(values[:, None] - values).astype(np.float32)


def make_features(networks: Networks) -> Array:
    """Returns the hyperparameters but the decoder, a column a value, [n, d]."""
    names = [name for name in networks.hyperparameters if name != DECODER]
    return pd.get_dummies(networks.table[names]).to_numpy(float)


def compute_interval(
    values: Array, level: float = LEVEL
) -> tuple[float, float]:
    """Returns the jackknife interval of a statistic [1 + b]."""
    count = len(values) - 1
    if count < 2 or not np.isfinite(values).all():
        return -np.inf, np.inf
    error = np.sqrt((count - 1) * values[1:].var())
    half = float(stats.t.ppf((1 + level) / 2, count - 1) * error)
    return float(values[0]) - half, float(values[0]) + half


def judge_numbers(
    networks: Networks,
    keys: Sequence[str],
    signs: Mapping[str, float] | None = None,
    proposed: Sequence[str] = (),
) -> dict[str, Row]:
    """Returns the statistics of numbers; the proposed ones share the level."""
    order, rows = Order(networks), {}
    for key in show_progress(keys, "numbers", "number", len(keys)):
        level = 1 - (1 - LEVEL) / len(proposed) if key in proposed else LEVEL
        values, sign = networks.table[key].to_numpy(), (signs or {}).get(key)
        rows[key] = order.judge(key, values, sign, level)
    return rows


def judge_halves(first: Networks, second: Networks) -> tuple[list[Row], ...]:
    """Returns the statistics of all numbers on both halves."""
    rows = judge_numbers(first, first.list_numbers())
    signs = {key: row["sign"] for key, row in rows.items()}
    proposed = [key for key, row in rows.items() if row["passes"]]
    keys = [key for key in second.list_numbers() if key in signs]
    again = judge_numbers(second, keys, signs, proposed)
    for key, row in again.items():
        row["proposed"] = key in proposed
        row["predicts"] = row["proposed"] and row["passes"]
    return [*rows.values()], [*again.values()]


def measure_power(halves: Sequence[Networks], num_proposed: int) -> list[Row]:
    """Returns how often planted predictors pass both halves."""
    rng, rows, orders = np.random.default_rng(0), [], [*map(Order, halves)]
    levels = LEVEL, 1 - (1 - LEVEL) / num_proposed
    for strength in STRENGTHS:
        # Normal variables with this Pearson correlation have that Spearman one.
        linear = 2 * np.sin(np.pi / 6 * strength)
        correlations, passes = [], []
        for _ in range(DRAWS):
            for order, level in zip(orders, levels, strict=True):
                outcome = order.networks.outcome
                ranks = stats.rankdata(outcome) - 0.5
                normal = stats.norm.ppf(ranks / len(outcome))
                noise = rng.standard_normal(len(outcome))
                values = linear * normal + np.sqrt(1 - linear**2) * noise
                row = order.judge("0.1|planted", values, 1.0, level)
                passes.append(row["passes"])
                correlations.append(stats.spearmanr(values, outcome).statistic)
        found = np.all(np.reshape(passes, (DRAWS, -1)), axis=1).mean()
        row = {"spearman": np.mean(correlations), "draws": DRAWS}
        rows.append(row | {"found": found})
    return rows
