"""The learned kernel is binary factorized.

Figures 1e and 8, equations 3 and 4.
"Non-compositional models learn a binary factorized kernel."
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import DONUTS, judge_symptom
from tfcomp.statistics.limits import Limits

SEEDS = range(100, 120)


def read(evidence: Evidence, runs: pd.DataFrame, when: str) -> pd.Series:
    """Reads the alignment, additive less radial kernel.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
    """
    additive = evidence.score(runs, "alignment_additive_best", when)
    return additive - evidence.score(runs, "alignment_radial_best", when)


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            read=read,
            part=code,
            quantity="alignment, additive less radial kernel",
            bound="> 0",
            limits=Limits(-2, 2),
        )
