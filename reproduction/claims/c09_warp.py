"""The manifold warps in the held-out region.

Figures 2e and 2f, section 3.4.
"we observe significant distortion as a function of network depth, especially in
the OOD region"
"""

from functools import partial

import pandas as pd

from reproduction.claims import Evidence, Networks, Reader, Rows
from reproduction.claims.networks import DONUTS, judge_symptom
from tfcomp.statistics.limits import CORRELATION, REAL

SEEDS = range(300, 320)
NEW_SEEDS = range(310, 320)  # of runs with log-volumes per contrast
NAME = "log_volume_median_deviation"
# Of a stage as if of contrast 1, which does not change where it merely fades.
PER_CONTRAST = "log_volume_per_contrast_median_deviation"
NOTE = """
Log-volumes also fall where activations fade; log-volumes per contrast do not.
With bump codes {rows[1].number.mean:.2f} of {rows[0].number.mean:.2f} remain
per contrast, and the rest is fading. With ramp codes they are measured in one
published network alone (table below).
"""


def warp(networks: Networks, name: str = NAME) -> pd.DataFrame:
    """Reads |log V - its ID median|, OOD less ID, of stages after the code.

    Args:
        networks: The networks that are read.
        name: The number at each stage.
    """
    outside = networks.stages(f"{name}_ood")
    inside = networks.stages(f"{name}_id")
    return (outside - inside).drop(columns="code")


def read_late(networks: Networks, name: str = NAME) -> pd.Series:
    """Reads the mean warp of the later half of the stages.

    Args:
        networks: The networks that are read.
        name: The number at each stage.
    """
    stages = warp(networks, name)
    late = stages.shape[1] // 2
    return stages.iloc[:, late:].mean(axis=1)


def read_trend(networks: Networks) -> pd.Series:
    """Reads the rank correlation of warp and stage."""
    stages = warp(networks)
    order = pd.Series(range(stages.shape[1]), stages.columns)
    return stages.T.corrwith(order, method="spearman")


LATE: dict[str, Reader] = {
    "|log V - ID median|, OOD less ID, late stages": read_late,
    "the same per contrast, late stages": partial(read_late, name=PER_CONTRAST),
}
TREND: dict[str, Reader] = {
    "the same, rank correlation with the stage": read_trend,
}


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        for quantity, number in (LATE | TREND).items():
            seeds = SEEDS
            if "per contrast" in quantity:
                seeds = NEW_SEEDS
            yield judge_symptom(
                evidence,
                flags,
                seeds,
                number,
                part=code,
                quantity=quantity,
                bound="> 0",
                limits=CORRELATION if quantity in TREND else REAL,
                shown=quantity in LATE,
            )
