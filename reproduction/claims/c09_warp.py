"""The manifold warps in the held-out region.

Figures 2e and 2f, section 3.4.
"we observe significant distortion as a function of network depth, especially in
the OOD region"
"""

import functools
from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import DONUTS, Reader, judge_symptom
from tfcomp.statistics.limits import CORRELATION, REAL

SEEDS = range(300, 310)
NEW_SEEDS = range(310, 320)  # of runs with log-volumes per contrast
NAME = "log_volume_median_deviation"
# Of a stage as if of contrast 1, which does not change where it merely fades.
PER_CONTRAST = "log_volume_per_contrast_median_deviation"
NOTE = """
Log-volumes also fall where activations fade; log-volumes per contrast do not,
and are not measured in these networks. In one published network of each code
(table below) they show that with bump codes most of this deviation is fading.
"""


def warp(
    evidence: Evidence, runs: pd.DataFrame, when: str, name: str = NAME
) -> pd.DataFrame:
    """Reads |log V - its ID median|, OOD less ID, of stages after the code.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
        name: The number at each stage.
    """
    outside = evidence.stages(runs, f"{name}_ood", when)
    inside = evidence.stages(runs, f"{name}_id", when)
    return (outside - inside).drop(columns="code")


def read_late(
    evidence: Evidence,
    runs: pd.DataFrame,
    when: str = "end",
    name: str = NAME,
) -> pd.Series:
    """Reads the mean warp of the later half of the stages.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
        name: The number at each stage.
    """
    stages = warp(evidence, runs, when, name)
    late = stages.shape[1] // 2
    return stages.iloc[:, late:].mean(axis=1)


def read_trend(evidence: Evidence, runs: pd.DataFrame, when: str) -> pd.Series:
    """Reads the rank correlation of warp and stage.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
    """
    stages = warp(evidence, runs, when)
    order = pd.Series(range(stages.shape[1]), stages.columns)
    return stages.T.corrwith(order, method="spearman")


QUANTITIES: dict[str, Reader] = {
    "|log V - ID median|, OOD less ID, late stages": read_late,
    "the same per contrast, late stages": functools.partial(
        read_late, name=PER_CONTRAST
    ),
    "the same, rank correlation with the stage": read_trend,
}


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        for quantity, read in QUANTITIES.items():
            seeds = SEEDS
            if "per contrast" in quantity:
                seeds = NEW_SEEDS
            yield judge_symptom(
                evidence,
                flags,
                seeds,
                read=read,
                part=code,
                quantity=quantity,
                bound="> 0",
                limits=CORRELATION if read is read_trend else REAL,
                shown=read is not read_trend,
            )
