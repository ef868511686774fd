"""Data needed: cubic for bumps, linear with stripes.

Figure 4c.
"the data requirements grow as the cube of the size of the problem [...] the
scaling is linear"
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from reproduction.claims import Evidence, Interval, Row, Rows
from reproduction.thresholds.laws import fit_law

STUDIES = {
    "small CNN": ["threshold_small", "threshold_small_next"],
    "donut's CNN": ["threshold_donut_fresh", "threshold_donut_next"],
}
# Words for the kind of training set, and the law that is claimed.
KINDS = {
    "bumps": ("bumps", "a+bN^3"),
    "stripes_and_bumps": ("stripes", "a+bN^1"),
}
CRITERION = "position_accuracy"
POWERS = (1, 2, 3)
NOTE = """
A law fits if it stays within the 95 % interval of the mean of every size; the
answer is open unless one law alone fits, since a cubic term over a floor looks
like a small power on sizes of 16 to 32. Sizes of 40, 48 and 64 are missing.
With stripes alone every position is right, so that the slope is 1 by
construction. Errors of all laws: {rows[0].note} (small CNN); {rows[2].note}
(donut's CNN).
"""


@dataclass(frozen=True, eq=False)
class SlopeRow(Row):
    """The slope of a power law; which other law fits alone decides."""

    number: Interval = Interval()
    holds: str = "open"


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for network, names in STUDIES.items():
        studies = [s for n, s in evidence.studies.items() if n in names]
        if not studies:
            continue
        table = pd.concat(studies).query("criterion == @CRITERION")
        for kind, searches in table.groupby("kind"):
            words, claimed = KINDS[str(kind)]
            yield judge_law(searches, f"{words}, {network}", claimed)


def judge_law(searches: pd.DataFrame, part: str, claimed: str) -> Row:
    """Judges which law alone fits the searches; reports all errors.

    Args:
        searches: Rows of threshold searches.
        part: The part of the claim.
        claimed: The law of the claim, as `a+bN^3`.
    """
    means, law = fit_law(searches)
    sizes = np.array(list(means), float)
    table = pd.DataFrame(list(means.values())).astype(float)
    counts = table["mean"].to_numpy()
    laws = fit_laws(sizes, counts)
    fitting = []
    for name, values in laws.items():
        is_within = (values >= table["low"]) & (values <= table["high"])
        if is_within.all():
            fitting.append(name)
    holds = "open"
    if len(fitting) == 1:
        holds = "yes" if claimed in fitting else "no"

    number = Interval()
    if law is not None:
        power = law.constant * sizes**law.slope
        laws = {f"N^{law.slope:.1f}": power} | laws
        if law.low is not None and law.high is not None:
            number = Interval(law.slope, law.low, law.high, len(means))
    notes = []
    for name, values in laws.items():
        error = np.sqrt(np.mean((values / counts - 1) ** 2))
        notes.append(f"{name} {error:.3f}")
    return SlopeRow(
        part=part,
        quantity="slope of examples, log-log",
        values=table["mean"],
        shown=part.startswith("bumps"),
        remark=", ".join(notes),
        number=number,
        holds=holds,
    )


def fit_laws(sizes: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Fits a + b N^k; returns the counts of each law at the sizes, [n].

    Args:
        sizes: Sizes of grids, [n].
        counts: Examples that these need, [n].
    """
    laws = {}
    for exponent in POWERS:
        powers = sizes**exponent
        # Weighted, so that relative errors are the least.
        line = np.polyfit(powers, counts, deg=1, w=1 / counts)
        laws[f"a+bN^{exponent}"] = np.polyval(line, powers)
    return laws
