"""Networks whose order is to be explained, and estimates with intervals.

Intervals come from the jackknife (Quenouille 1956). Its blocks are whole
settings with all their seeds, since seeds of a setting are not independent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

BLOCKS = 20

Array = NDArray[np.float64]
Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class Networks:
    """Networks; those that are equal in all settings differ in their seed.

    Attributes:
        outcome: What a measure should order them by, [n].
        settings: The number of the value of each hyperparameter, [n], by its
            name.
        noise: Standard deviation of the outcome over seeds of one setting.
    """

    outcome: Array
    settings: Mapping[str, Numbers]
    noise: float

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
        """Membership of cells in at most `BLOCKS` blocks, [c, b].

        They are dealt at random, the same way every time.
        """
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

        Pairs of cells are fewer than pairs of networks by the square of the
        number of seeds.
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


def combine(estimates: Sequence[Estimate], how: str) -> Estimate:
    """The mean, smallest or largest of some estimates."""
    if not estimates:
        return Estimate(np.full(1, np.nan))
    functions = {"mean": np.mean, "min": np.min, "max": np.max}
    table = np.array([estimate.values for estimate in estimates])
    return Estimate(functions[how](table, axis=0))
