"""From the records of a study to networks whose order is to be explained."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tfcomp.studies.prediction.design import DECODER, Found
from tfcomp.studies.records import Record

BLOCKS = 20
MIN_SHARE = 0.9  # of the networks must have a measure
MIN_NETWORKS = 4
ID_ERROR = "id_relative_mse"
OUTCOME = "ood_relative_mse"
# An error as small as this is none.
SMALLEST = 1e-12

Array = NDArray[np.float64]
Numbers = NDArray[np.int_]
# A measure and the time at which it was taken.
Key = tuple[str, str]


@dataclass(frozen=True)
class Networks:
    """Networks; those that are equal in all settings differ in their seed."""

    outcome: Array  # what a measure should order them by, [n]
    settings: Mapping[str, Numbers]  # the numbers of the values, [n], by name
    noise: float  # standard deviation of the outcome over seeds of a setting

    @cached_property
    def cells(self) -> Numbers:
        """The number of the setting of each network, [n]."""
        table = np.column_stack(list(self.settings.values()))
        return np.unique(table, axis=0, return_inverse=True)[1].ravel()

    @cached_property
    def cell_settings(self) -> dict[str, Numbers]:
        """As `settings`, of each cell, [c]."""
        first = np.unique(self.cells, return_index=True)[1]
        return {name: values[first] for name, values in self.settings.items()}

    @cached_property
    def cell_blocks(self) -> Array:
        """Membership of cells in at most `BLOCKS` random blocks, [c, b]."""
        cells = self.cells.max() + 1
        count = min(BLOCKS, cells)
        dealt = np.random.default_rng(0).permutation(cells) % count
        return np.eye(count)[dealt]

    @property
    def blocks(self) -> Array:
        """Membership of networks in blocks, [n, b]."""
        return self.cell_blocks[self.cells]

    @cached_property
    def order(self) -> Numbers:
        """The networks, cell by cell, [n]."""
        return np.argsort(self.cells, kind="stable")

    def sum_cells(self, table: NDArray) -> Array:
        """Sums over the pairs of cells, [c, c], of a table [n, n] in `order`.

        There are fewer, by the square of the number of seeds.
        """
        starts = np.unique(self.cells[self.order], return_index=True)[1]
        rows = np.add.reduceat(table, starts, axis=0, dtype=float)
        return np.add.reduceat(rows, starts, axis=1)

    @cached_property
    def num_pairs(self) -> Array:
        """How many pairs of networks there are of two cells, [c, c]."""
        sizes = np.bincount(self.cells).astype(float)
        return np.outer(sizes, sizes) - np.diag(sizes)

    @cached_property
    def sign_weights(self) -> Array:
        """Weight of every pair [n, n] in `order`, less within the noise.

        max(0, 2 P - 1)^2, where P is the probability that the sign of a
        difference is right, given normal noise of two seeds.
        """
        outcome = self.outcome[self.order]
        gap = np.abs(outcome[:, None] - outcome[None, :])
        noise = max(self.noise * np.sqrt(2), 1e-12)
        return np.maximum(0.0, 2 * stats.norm.cdf(gap / noise) - 1) ** 2

    @cached_property
    def sum_sign_weights(self) -> Array:
        """That of pairs of cells, [c, c]."""
        return self.sum_cells(self.sign_weights)


@dataclass(frozen=True)
class Evidence:
    """Networks that met the target, and what was measured of them."""

    networks: Networks
    measures: Mapping[Key, Array]  # [n], NaN where there is none
    decoder: str  # the hyperparameter that names the decoder
    decoder_names: Sequence[str] = ()  # its values, by their number

    def take(self, rows: NDArray[np.bool_]) -> "Evidence":
        """Some of the networks."""
        if rows.all():
            return self
        known = self.networks
        settings = {name: v[rows] for name, v in known.settings.items()}
        networks = Networks(known.outcome[rows], settings, known.noise)
        measures = {key: values[rows] for key, values in self.measures.items()}
        return dataclasses.replace(self, networks=networks, measures=measures)

    def list_keys(self) -> list[Key]:
        """The measures that enough networks have and that differ at all."""
        return [
            key
            for key, values in self.measures.items()
            if np.isfinite(values).mean() >= MIN_SHARE
            and np.isfinite(values).sum() >= MIN_NETWORKS
            and np.nanmax(values) > np.nanmin(values)
        ]


def make_evidence(
    found: Sequence[Found], hyperparameters: Sequence[tuple[str, ...]]
) -> Evidence | None:
    """The networks that met the target; None if there are none.

    The outcome is log10 of the OOD relative MSE. Errors of ID images are
    logarithms, too.
    """
    met = [each for each in found if each.record["reached"]]
    if not met:
        return None
    values = {
        "/".join(names): [
            "/".join(str(each.cell.setting[n]) for n in names) for each in met
        ]
        for names in hyperparameters
    }
    settings = {name: number(texts) for name, texts in values.items()}
    outcome = take_log([each.record[OUTCOME] for each in met])
    noise = _pool_deviation(outcome, number([each.cell.name for each in met]))
    decoder = next("/".join(n) for n in hyperparameters if DECODER in n)
    networks = Networks(outcome, settings, noise)
    table = tabulate([each.record for each in met])
    return Evidence(networks, table, decoder, sorted(set(values[decoder])))


def number(values: Sequence[str]) -> Numbers:
    """The place of each value among the different ones, sorted, [n]."""
    return np.unique(values, return_inverse=True)[1]


def take_log(errors: Sequence[float]) -> Array:
    """Decimal logarithms of errors, of which the smallest are alike."""
    return np.log10(np.maximum(errors, SMALLEST))


def _pool_deviation(outcome: Array, groups: Numbers) -> float:
    """Standard deviation over the seeds of a setting, of all settings."""
    means = np.bincount(groups, outcome) / np.bincount(groups)
    freedom = len(outcome) - len(means)
    rest = outcome - means[groups]
    return float(np.sqrt((rest**2).sum() / freedom)) if freedom else 0.0


def tabulate(records: Sequence[Record]) -> dict[Key, Array]:
    """Every number of every time, [n], by time and name; NaN without one."""
    keys = {
        (name, time)
        for record in records
        for time, numbers in record["measures"].items()
        for name in numbers
        if name != "share"
    }
    table = {}
    for name, time in sorted(keys, key=lambda key: (float(key[1]), key[0])):
        found = [r["measures"].get(time, {}).get(name) for r in records]
        values = np.array([np.nan if v is None else v for v in found], float)
        table[name, time] = take_log(values) if name == ID_ERROR else values
    return table
