"""Statistics of pairs of networks: does a measure order them as their errors?

Each is a weighted mean over pairs of how their signs agree, from sums over the
pairs of two settings (cells). Kendall's tau and its granulated form follow
Jiang et al. (2020), the sign error Dziugaite et al. (2020). Intervals come from
the jackknife (Quenouille 1956) over blocks of whole settings, since the seeds
of one are not independent.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tfcomp.studies.prediction.evidence import Array, Networks

MAX_GIVEN = 2  # hyperparameters that are held fixed at once

Cells = NDArray[np.bool_]


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


def combine(estimates: Iterable[Estimate], function: Callable) -> Estimate:
    """Some estimates as one, by a function of NumPy such as the mean."""
    table = [estimate.values for estimate in estimates]
    return Estimate(function(table, axis=0) if table else np.full(1, np.nan))


@dataclass(frozen=True)
class Agreement:
    """How a measure and the outcome order the pairs of two cells, [c, c].

    Attributes:
        same: Pairs of which the first has more of both.
        opposite: Pairs of which it has more of the measure and less of the
            outcome.
        sure: Signs of all pairs, weighed by `Networks.sign_weights`.
    """

    networks: Networks
    same: Array
    opposite: Array
    sure: Array

    def average(self, chosen: Cells | float = 1.0) -> Estimate:
        """Kendall's tau over the pairs of some cells; a tie is no agreement."""
        ahead = self.same - self.opposite
        weights = chosen * self.networks.num_pairs
        return average_pairs(chosen * (ahead + ahead.T), weights, self.networks)


def compare_orders(measure: Array, networks: Networks) -> Agreement:
    """Compares the order of a measure [n] with that of the outcome."""
    measure, outcome = measure[networks.order], networks.outcome[networks.order]
    is_more = measure[:, None] > measure
    is_worse = outcome[:, None] > outcome
    same, opposite = is_more & is_worse, is_more & is_worse.T
    sure = networks.sign_weights * (same.astype(np.int8) - opposite)
    same, opposite, sure = map(networks.sum_cells, (same, opposite, sure))
    return Agreement(networks, same, opposite, sure + sure.T)


def average_pairs(sums: Array, weights: Array, networks: Networks) -> Estimate:
    """Sums [c, c] over weights, also without each block; NaN of no weight."""
    blocks, totals = networks.cell_blocks, []
    for table in (sums, weights):
        between = blocks.T @ table @ blocks  # [b, b]
        without = between.sum(axis=0) + between.sum(axis=1) - between.diagonal()
        totals.append(between.sum() - np.concatenate([[0.0], without]))
    total, weight = totals
    with np.errstate(invalid="ignore", divide="ignore"):
        return Estimate(np.where(weight > 1e-9, total / weight, np.nan))


def compute_granulated(agreement: Agreement) -> dict[str, Estimate]:
    """Tau over pairs that differ in one hyperparameter alone, by its name.

    Their mean is the granulated coefficient Psi. A hyperparameter that varies
    nowhere has none.
    """
    coupled = _couple(agreement.networks)
    return {name: agreement.average(cells) for name, cells in coupled.items()}


def compute_conditional(
    agreement: Agreement,
) -> tuple[tuple[str, ...], Estimate]:
    """The smallest tau over pairs that share up to two hyperparameters.

    They come first. A measure that only follows one of them has 0 there.
    """
    networks, found = agreement.networks, {}
    for shared in list_given(networks.settings):
        estimate = agreement.average(_share(networks, shared))
        if np.isfinite(estimate.value):
            found[shared] = estimate
    lowest = min(found, key=lambda shared: found[shared].value)
    return lowest, combine(found.values(), np.nanmin)


def compute_information(agreement: Agreement) -> float:
    """Conditional mutual information of signs, normalized, at its smallest.

    K = min over S of I(V_measure; V_outcome | U_S) / H(V_outcome | U_S), where
    V are the signs of a pair and U_S the values of up to two hyperparameters
    S of both networks. Ties, which have no sign, are left out.
    """
    same, opposite = agreement.same, agreement.opposite
    signs = np.array([[same.T, opposite.T], [opposite, same]])  # [2, 2, c, c]
    ratios = []
    for given in list_given(agreement.networks.settings):
        groups = _group(agreement.networks, given)
        ratios.append(_normalize_information(groups.T @ signs @ groups))
    return float(np.nanmin(ratios))


def compute_sign_error(agreement: Agreement) -> dict[str, Estimate]:
    """Share of coupled pairs in the wrong order, by hyperparameter.

    Pairs within the noise of seeds weigh less (`Networks.sign_weights`). A tie
    of the measure is half an error.
    """
    networks, weights = agreement.networks, agreement.networks.sum_sign_weights
    wrong = (weights - agreement.sure) / 2
    return {
        name: average_pairs(cells * wrong, cells * weights, networks)
        for name, cells in _couple(networks).items()
    }


def list_given(settings: Iterable[str]) -> list[tuple[str, ...]]:
    """All sets of at most `MAX_GIVEN` hyperparameters, the empty one first."""
    names = list(settings)
    sizes = range(min(MAX_GIVEN, len(names) - 1) + 1)
    return [s for size in sizes for s in itertools.combinations(names, size)]


def _couple(networks: Networks) -> Mapping[str, Cells]:
    """Pairs [c, c] that differ in one hyperparameter alone, by its name."""
    same = {name: _share(networks, [name]) for name in networks.settings}
    number = sum(~cells for cells in same.values())
    coupled = {name: ~cells & (number == 1) for name, cells in same.items()}
    return {name: cells for name, cells in coupled.items() if cells.any()}


def _share(networks: Networks, names: Iterable[str]) -> Cells:
    groups = _group(networks, names)
    return groups @ groups.T > 0


def _group(networks: Networks, names: Iterable[str]) -> Array:
    """Membership of cells in the groups that share hyperparameters, [c, g]."""
    settings = networks.cell_settings
    columns = [settings[name] for name in names]
    if not columns:
        return np.ones((len(networks.cell_blocks), 1))
    table = np.column_stack(columns)
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
