"""Data needed: cubic for bumps, linear with stripes.

Figure 4c.
"the data requirements grow as the cube of the size of the problem [...] the
scaling is linear"
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Interval, Row
from reproduction.thresholds.laws import fit_law

STUDIES = {
    "small CNN": "threshold_small",
    "donut's CNN": "threshold_donut_fresh",
}
KINDS = {"bumps": "bumps", "stripes_and_bumps": "stripes"}
CLAIMED = {"bumps": "a+bN^3", "stripes_and_bumps": "a+bN^1"}
POWERS = (1, 2, 3)
NOTE = """
A law fits if it stays within the 95 % interval of the mean of every size; the
answer is open unless one law alone fits, since a cubic term over a floor looks
like a small power on sizes of 16 to 32. Sizes of 40, 48 and 64 are missing.
With stripes alone every position is right, so that the slope is 1 by
construction. Errors of all laws: {rows[0].note} (small CNN); {rows[2].note}
(donut's CNN).
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for network, name in STUDIES.items():
        if name not in evidence.studies:
            continue
        for kind, words in KINDS.items():
            searches = evidence.studies[name].query(
                "kind == @kind and criterion == 'position_accuracy'"
            )
            yield judge_law(searches, f"{words}, {network}", CLAIMED[kind])


def judge_law(searches: pd.DataFrame, part: str, claimed: str) -> Row:
    """Judges which law alone fits the searches; reports all errors.

    Args:
        searches: Rows of threshold searches.
        part: The part of the claim.
        claimed: The law of the claim, as `a+bN^3`.
    """
    means, law = fit_law(searches)
    table = pd.DataFrame(means)
    counts = table["mean"].to_numpy()
    sizes = table["size"].to_numpy(float)
    laws = fit_laws(sizes, counts)
    fitting = []
    for name, values in laws.items():
        is_within = (values >= table["low"]) & (values <= table["high"])
        if is_within.all():
            fitting.append(name)
    if law is not None:
        power = law.constant * sizes**law.slope
        laws = {f"N^{law.slope:.1f}": power} | laws
    notes = []
    for name, values in laws.items():
        error = np.sqrt(np.mean((values / counts - 1) ** 2))
        notes.append(f"{name} {error:.3f}")
    holds = "open"
    if len(fitting) == 1:
        holds = "yes" if claimed in fitting else "no"
    number = Interval()
    if law is not None and law.low is not None and law.high is not None:
        number = Interval(law.slope, law.low, law.high, len(means))
    return Row(
        part=part,
        quantity="slope of examples, log-log",
        bound="",
        number=number,
        tried=len(means),
        holds=holds,
        specific="-",
        shown=part.startswith("bumps"),
        note=", ".join(notes),
    )


def fit_laws(sizes: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Fits a + b N^k; returns the counts of each law at the sizes, [n].

    Args:
        sizes: Sizes of grids, [n].
        counts: Examples that these need, [n].
    """
    laws = {}
    ones = np.ones_like(sizes)
    for exponent in POWERS:
        terms = np.stack([ones, sizes**exponent], axis=1)
        # Weighted, so that relative errors are the least.
        weighted = terms / counts[:, None]
        solution = np.linalg.lstsq(weighted, ones, rcond=None)
        laws[f"a+bN^{exponent}"] = terms @ solution[0]
    return laws
