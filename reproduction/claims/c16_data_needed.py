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
POWERS = (1, 2, 3)
NOTE = """
A cubic term over a floor looks like a small power on sizes of 16 to 32, so
that the slope alone decides nothing. Sizes of 40, 48 and 64 are missing. With
stripes alone every position is right, so that the slope is 1 by construction.
Errors of other laws: {rows[0].note} (small CNN); {rows[2].note} (donut's
CNN).
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
            yield judge_slope(searches, f"{words}, {network}", kind == "bumps")


def judge_slope(searches: pd.DataFrame, part: str, shown: bool) -> Row:
    """Reports the power law of searches, and other laws that fit as well.

    Args:
        searches: Rows of threshold searches.
        part: The part of the claim.
        shown: Whether the page has the row.
    """
    means, law = fit_law(searches)
    sizes = np.array([mean.size for mean in means], float)
    counts = np.array([mean.mean for mean in means])
    errors = fit_laws(sizes, counts)
    fits = [f"{name} {error:.3f}" for name, error in errors.items()]
    number = Interval()
    if law is not None and law.low is not None and law.high is not None:
        number = Interval(law.slope, law.low, law.high, len(means))
    return Row(
        part=part,
        quantity="slope of examples, log-log",
        bound="",
        number=number,
        tried=len(means),
        holds="open",
        specific="-",
        shown=shown,
        note=", ".join(fits),
    )


def fit_laws(sizes: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Fits N^p and a + b N^k; returns their relative errors (RMS).

    Args:
        sizes: Sizes of grids, [n].
        counts: Examples that these need, [n].
    """
    slope, constant = np.polyfit(np.log(sizes), np.log(counts), 1)
    power = np.exp(constant) * sizes**slope
    laws = {f"N^{slope:.1f}": power}
    ones = np.ones_like(sizes)
    for exponent in POWERS:
        terms = np.stack([ones, sizes**exponent], axis=1)
        # Weighted, so that relative errors are the least.
        weighted = terms / counts[:, None]
        solution = np.linalg.lstsq(weighted, ones, rcond=None)
        laws[f"a+bN^{exponent}"] = terms @ solution[0]

    errors = {}
    for law, values in laws.items():
        residual = values / counts - 1
        mean_square = np.mean(residual**2)
        errors[law] = float(np.sqrt(mean_square))
    return errors
