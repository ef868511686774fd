"""Linear probes weaken from stage to stage.

Figures 2, 11 to 14.
"We note that both metrics decay relatively gracefully over the layer depth"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import DONUTS, judge_symptom

SEEDS = range(100, 120)
NOTE = """
Networks that draw all positions weaken as well ({rows[0].controls[trained on
all].number.mean:.2f} with bump codes): probes do not tell who composes.
Untrained networks are not scored.
"""


def read(evidence: Evidence, runs: pd.DataFrame, when: str) -> pd.Series:
    """Reads R² at the last hidden stage less that at the first.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
    """
    stages = evidence.stages(runs, "probe_r2_ood", when)
    hidden = stages.drop(columns=["code", "image"])
    return hidden.iloc[:, -1] - hidden["stage_0"]


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            read=read,
            part=code,
            quantity="probe R² (ID to OOD), last less first hidden",
            bound="< 0",
            has_start=False,
        )
