"""Unseen combinations are superpositions of memories.

Figure 1d, section 3.3.
"it finds an image or images in the training data with similar values of x and
the closest values of y, and superposes these to generate a new image"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import (
    DONUTS,
    Reader,
    judge_symptom,
    read_score,
)
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

SEEDS = range(300, 310)
SHARING = "sharing_far_r2_centered"
RIVALS = {
    "nearest outputs that share neither factor": "rival_far_r2_centered",
    "outputs that share one factor": "single_far_r2_centered",
}
NOTE = """
Points at least 4 steps inside the square. With bump codes untrained networks
have {rows[0].controls[untrained].number.mean:.2f} as well, so that training
does not make outputs superpositions. {rows[3].number.mean:.0%} of the outputs
have no peak with bump codes, and {rows[7].number.mean:.0%} with ramp codes,
which are nearly blank.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            read=read_score(SHARING),
            part=code,
            quantity="R² of OOD outputs on outputs sharing x or y",
            bound="> 0.5",
            limits=AT_MOST_ONE,
        )
        for words, rival in RIVALS.items():
            yield judge_symptom(
                evidence,
                flags,
                SEEDS,
                read=read_margin(rival),
                part=code,
                quantity=f"this R² less that on {words}",
                bound="> 0",
                shown=False,
            )
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            read=read_score("no_peak_ood"),
            part=code,
            quantity="share of OOD images without any peak",
            bound="",
            limits=SHARE,
            shown=False,
        )


def read_margin(rival: str) -> Reader:
    """Makes what reads this R² less a rival's R²."""

    def read(evidence: Evidence, runs: pd.DataFrame, when: str) -> pd.Series:
        r2 = evidence.score(runs, SHARING, when)
        return r2 - evidence.score(runs, rival, when)

    return read
