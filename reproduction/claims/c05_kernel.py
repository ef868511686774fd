"""The learned kernel is binary factorized.

Figures 1e and 8, equations 3 and 4.
"Non-compositional models learn a binary factorized kernel."
"""

from pandas import Series

from reproduction.claims import Evidence, Networks, Rows
from reproduction.claims.networks import judge_symptom, list_donuts
from tfcomp.statistics.limits import Limits

SEEDS = range(100, 120)


def read(networks: Networks) -> Series:
    """Reads the alignment, additive less radial kernel."""
    additive = networks.score("alignment_additive_best")
    return additive - networks.score("alignment_radial_best")


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in list_donuts(evidence).items():
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            read,
            part=code,
            quantity="alignment, additive less radial kernel",
            bound="> 0",
            limits=Limits(-2, 2),
        )
