"""Data needed: cubic for bumps, linear with stripes.

Figure 4c.
"the data requirements grow as the cube of the size of the problem [...] the
scaling is linear"
"""

import math
from collections.abc import Iterator

import numpy as np

from reproduction.claims.evidence import TOTAL, Evidence, ThresholdStudy
from reproduction.claims.judge import Interval, Row

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
        for study in evidence.studies:
            if study.path.name != name:
                continue
            for kind, words in KINDS.items():
                yield judge_slope(study, kind, f"{words}, {network}")


def judge_slope(study: ThresholdStudy, kind: str, part: str) -> Row:
    """Reports the power law of a study, and other laws that fit as well."""
    slopes, searches = study.slopes, study.thresholds
    is_asked = (slopes["kind"] == kind) & (slopes["quantity"] == TOTAL)
    slopes = slopes[is_asked & (slopes["criterion"] == "position_accuracy")]
    slope = slopes.iloc[0]
    searches = searches[searches["kind"] == kind]
    searches = searches[searches["criterion"] == "position_accuracy"]
    logs = searches[TOTAL].astype(float).map(math.log)
    means = logs.groupby(searches["grid_size"]).mean().map(math.exp)
    errors = fit_laws(means.index.to_numpy(float), means.to_numpy())
    fits = ", ".join(f"{law} {error:.3f}" for law, error in errors.items())
    return Row(
        part=part,
        quantity="slope of examples, log-log",
        bound="",
        number=Interval(
            slope["slope"], slope["low"], slope["high"], len(means)
        ),
        tried=len(means),
        holds="open",
        specific="-",
        shown=kind == "bumps",
        note=fits,
    )


def fit_laws(sizes: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Fits N^p and a + b N^k; returns their relative errors (RMS)."""
    slope, constant = np.polyfit(np.log(sizes), np.log(counts), 1)
    power = np.exp(constant) * sizes**slope
    fitted = {f"N^{slope:.1f}": power}
    for exponent in POWERS:
        terms = np.stack([np.ones_like(sizes), sizes**exponent], axis=1)
        # Weighted, so that relative errors are the least.
        weighted = terms / counts[:, None]
        weights, *_ = np.linalg.lstsq(
            weighted, np.ones_like(counts), rcond=None
        )
        fitted[f"a+bN^{exponent}"] = terms @ weights
    return {
        law: float(np.sqrt(np.mean((values / counts - 1) ** 2)))
        for law, values in fitted.items()
    }
