"""Statistics of pairs of networks: does a measure order them as their errors?

Every statistic is a weighted mean over pairs of how their signs agree, so
that one function computes them all, and what they are without each block of
networks: the jackknife gives intervals (Quenouille 1956; blocks are whole
settings with all their seeds, since seeds of a setting are not independent).

Kendall's tau and its granulated form follow Jiang et al. (2020), the sign
error Dziugaite et al. (2020).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

BLOCKS = 20
MAX_GIVEN = 2  # hyperparameters that are held fixed at once

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Networks:
    """Networks whose order is to be explained.

    Attributes:
        outcome: What a measure should order them by, [n].
        settings: The number of the value of each hyperparameter, int [n], by
            its name. Networks that are equal in all differ in their seed.
        noise: Standard deviation of the outcome over seeds of one setting.
    """

    outcome: Array
    settings: Mapping[str, NDArray[np.int_]]
    noise: float

    @property
    def cells(self) -> NDArray[np.int_]:
        """The number of the setting of each network, [n]."""
        table = np.column_stack(list(self.settings.values()))
        return np.unique(table, axis=0, return_inverse=True)[1].ravel()

    @property
    def blocks(self) -> Array:
        """Membership in at most `BLOCKS` blocks of settings, [n, b].

        Settings are dealt at random, the same way every time.
        """
        cells = self.cells
        count = min(BLOCKS, cells.max() + 1)
        dealt = np.random.default_rng(0).permutation(cells.max() + 1) % count
        return np.eye(count)[dealt[cells]]


@dataclass(frozen=True)
class Estimate:
    """A statistic, [1 + b]: of all networks, then without each block."""

    values: Array

    @property
    def value(self) -> float:
        """The statistic of all networks."""
        return float(self.values[0])

    def get_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of the jackknife interval."""
        left_out = self.values[1:]
        count = len(left_out)
        if count < 2 or not np.isfinite(self.values).all():
            return -np.inf, np.inf
        variance = (count - 1) / count * ((left_out - left_out.mean()) ** 2)
        width = stats.t.ppf((1 + level) / 2, count - 1)
        half = float(width * np.sqrt(variance.sum()))
        return self.value - half, self.value + half


def compute_signs(values: Array) -> Array:
    """Sign of the difference of every pair, [n, n]."""
    return np.sign(values[:, None] - values[None, :])


def average_pairs(scores: Array, weights: Array, blocks: Array) -> Estimate:
    """Weighted mean of the scores of pairs, NaN where no pair has weight.

    Args:
        scores: Of every pair, [n, n], symmetric.
        weights: Likewise, nonnegative, 0 on the diagonal.
        blocks: Membership of networks in blocks, [n, b].
    """
    sums = []
    for table in (scores * weights, weights):
        between = blocks.T @ table @ blocks  # [b, b]
        without = between.sum(axis=0) + between.sum(axis=1) - between.diagonal()
        sums.append(between.sum() - np.concatenate([[0.0], without]))
    total, weight = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        return Estimate(np.where(weight > 1e-9, total / weight, np.nan))


def compute_tau(measure: Array, networks: Networks) -> Estimate:
    """Kendall's tau over all pairs; a tie counts as no agreement."""
    return _average_agreement(
        measure, networks, ~np.eye(len(measure), dtype=bool)
    )


def compute_granulated(
    measure: Array, networks: Networks
) -> dict[str, Estimate]:
    """Tau over pairs that differ in one hyperparameter alone, by its name.

    Their mean is the granulated coefficient Psi. A hyperparameter that varies
    nowhere has none.
    """
    return {
        name: _average_agreement(measure, networks, coupled)
        for name, coupled in _couple(networks).items()
    }


def compute_conditional(
    measure: Array, networks: Networks
) -> tuple[tuple[str, ...], Estimate]:
    """The smallest tau over pairs that share up to two hyperparameters.

    A measure that only follows a hyperparameter has 0 where that is shared.

    Returns:
        The shared hyperparameters, and the smallest of all taus, without a
        block as well.
    """
    found = {}
    for shared in list_given(networks.settings):
        same = _share(networks, shared)
        estimate = _average_agreement(measure, networks, same)
        if np.isfinite(estimate.value):
            found[shared] = estimate
    lowest = min(found, key=lambda shared: found[shared].value)
    table = np.array([estimate.values for estimate in found.values()])
    return lowest, Estimate(np.nanmin(table, axis=0))


def compute_information(measure: Array, networks: Networks) -> float:
    """Conditional mutual information of signs, normalized, at its smallest.

    K = min over S of I(V_measure; V_outcome | U_S) / H(V_outcome | U_S), where
    V are the signs of a pair and U_S the values of up to two hyperparameters
    S of both networks. Ties, which have no sign, are left out.
    """
    found = compute_signs(measure), compute_signs(networks.outcome)
    ratios = []
    for given in list_given(networks.settings):
        groups = _group(networks, given)
        counts = np.array(
            [
                [
                    groups.T @ ((found[0] == a) & (found[1] == b)) @ groups
                    for b in (-1, 1)
                ]
                for a in (-1, 1)
            ]
        )  # [2, 2, g, g]
        ratios.append(_normalize_information(counts))
    return float(np.nanmin(ratios))


def compute_sign_error(
    measure: Array, networks: Networks
) -> dict[str, Estimate]:
    """Share of coupled pairs in the wrong order, by hyperparameter.

    Pairs within the noise of seeds weigh less: w = max(0, 2 P - 1)^2, where P
    is the probability that the sign of a difference is right, given normal
    noise of two seeds. A tie of the measure is half an error.
    """
    signs = compute_signs(measure) * compute_signs(networks.outcome)
    gap = np.abs(networks.outcome[:, None] - networks.outcome[None, :])
    noise = max(networks.noise * np.sqrt(2), 1e-12)
    weight = np.maximum(0.0, 2 * stats.norm.cdf(gap / noise) - 1) ** 2
    blocks = networks.blocks
    return {
        name: average_pairs((1 - signs) / 2, weight * coupled, blocks)
        for name, coupled in _couple(networks).items()
    }


def list_given(settings: Mapping[str, object]) -> list[tuple[str, ...]]:
    """All sets of at most `MAX_GIVEN` hyperparameters, the empty one first."""
    sizes = range(min(MAX_GIVEN, len(settings) - 1) + 1)
    return [s for size in sizes for s in itertools.combinations(settings, size)]


def combine(estimates: Sequence[Estimate], how: str) -> Estimate:
    """The mean, smallest or largest of some estimates."""
    if not estimates:
        return Estimate(np.full(1, np.nan))
    functions = {"mean": np.mean, "min": np.min, "max": np.max}
    table = np.array([estimate.values for estimate in estimates])
    return Estimate(functions[how](table, axis=0))


def _average_agreement(
    measure: Array, networks: Networks, pairs: NDArray[np.bool_]
) -> Estimate:
    signs = compute_signs(measure) * compute_signs(networks.outcome)
    pairs = pairs & ~np.eye(len(measure), dtype=bool)
    return average_pairs(signs, pairs.astype(float), networks.blocks)


def _couple(networks: Networks) -> dict[str, NDArray[np.bool_]]:
    """Pairs [n, n] that differ in one hyperparameter alone, by its name."""
    same = {
        name: values[:, None] == values[None, :]
        for name, values in networks.settings.items()
    }
    number = sum(~table for table in same.values())
    coupled = {name: ~table & (number == 1) for name, table in same.items()}
    return {name: table for name, table in coupled.items() if table.any()}


def _share(networks: Networks, names: Sequence[str]) -> NDArray[np.bool_]:
    groups = _group(networks, names)
    return groups @ groups.T > 0


def _group(networks: Networks, names: Sequence[str]) -> Array:
    """Membership in the groups that share hyperparameters, [n, g]."""
    if not names:
        return np.ones((len(networks.outcome), 1))
    table = np.column_stack([networks.settings[name] for name in names])
    index = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    return np.eye(index.max() + 1)[index]


def _normalize_information(counts: Array) -> float:
    """I(a; b | group) / H(b | group) of counts [2, 2, g, g]."""
    total = counts.sum()
    if not total:
        return float("nan")
    joint = counts / total
    group = joint.sum(axis=(0, 1), keepdims=True)
    first = joint.sum(axis=1, keepdims=True)
    second = joint.sum(axis=0, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = joint * np.log(joint * group / (first * second))
        unknown = -second * np.log(second / group)
    entropy = np.nansum(unknown)
    return float(np.nansum(shared) / entropy) if entropy > 0 else float("nan")
