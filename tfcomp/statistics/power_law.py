"""Growth of a count with the size of the grid: the slope in log-log scale.

Counts at the same size are repeats: they share all that a power law leaves out
there. So they are averaged in log scale over seeds, and the line is fitted to
these means with equal weights; the interval of its slope is Student's at 95 %
with (number of sizes - 2) degrees of freedom.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcomp.statistics.seed_statistics import compute_interval


@dataclass(frozen=True)
class SizeMean:
    """Geometric mean of the counts of one size over seeds; 95 % interval."""

    size: int
    mean: float
    low: float | None
    high: float | None
    num_seeds: int


@dataclass(frozen=True)
class PowerLaw:
    """count = constant * size ** slope, with the 95 % interval of the slope."""

    slope: float
    low: float | None
    high: float | None
    constant: float

    def describe(self) -> str:
        """Formats exponent and interval, as `N^2.10 (1.80 to 2.40)`."""
        if self.low is None:
            return f"N^{self.slope:.2f}"
        return f"N^{self.slope:.2f} ({self.low:.2f} to {self.high:.2f})"


def average_sizes(
    sizes: Sequence[int], counts: Sequence[float]
) -> list[SizeMean]:
    """Averages the positive counts of each size."""
    logs, means = np.log(np.asarray(counts, float)), []  # [n]
    for size in sorted(set(sizes)):
        chosen = logs[np.equal(sizes, size)]
        ends = compute_interval(chosen)
        low, high = np.exp(ends).tolist() if ends else (None, None)
        mean = float(np.exp(chosen.mean()))
        means.append(SizeMean(size, mean, low, high, len(chosen)))
    return means


def fit_power_law(means: Sequence[SizeMean]) -> PowerLaw | None:
    """Fits a line to the logarithms; returns None for fewer than two sizes."""
    from scipy import stats

    if len(means) < 2:
        return None
    logs = np.log([[mean.size, mean.mean] for mean in means])
    line = stats.linregress(logs[:, 0], logs[:, 1])
    low = high = None
    if len(means) > 2:
        width = stats.t.ppf(0.975, len(means) - 2) * line.stderr
        low, high = float(line.slope - width), float(line.slope + width)
    constant = float(np.exp(line.intercept))
    return PowerLaw(float(line.slope), low, high, constant)
