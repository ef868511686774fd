"""Penalties make the representation smoother.

Figure 3d.
"With regularization, the learned representation is significantly smoother than
without, as evidenced in Fig. 3(d)"
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import select_penalties

SEEDS = range(200, 240)
NAMES = {"all": "log_volume_sd", "OOD": "log_volume_sd_ood"}
NOTE = """
Mean over stages, fitted networks without a dead stage.
"""


def is_alive(evidence: Evidence, runs: pd.DataFrame) -> np.ndarray:
    """Reads whether no stage of a run has dead units alone.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
    """
    dead = evidence.stages(runs, "dead_fraction").max(axis=1)
    return (dead < 1).to_numpy()


def read_spread(
    evidence: Evidence, runs: pd.DataFrame, name: str = NAMES["all"]
) -> pd.Series:
    """Reads the sd of log-volumes over points, as a mean over stages.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        name: The metric of stages, one of `NAMES`.
    """
    stages = evidence.stages(runs, name).drop(columns="code")
    return stages.mean(axis=1)


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    runs = select_penalties(evidence, SEEDS)
    for points, name in NAMES.items():
        means = []
        for penalties in ("none", "both"):
            fitted = evidence.fitted(runs[penalties])
            fitted = fitted[is_alive(evidence, fitted)]
            means.append(read_spread(evidence, fitted, name))
        yield judge_number(
            part=f"none less both, {points} points",
            quantity="sd of log-volume",
            values=(means[0] - means[1]).dropna(),
            bound="> 0",
            tried=len(runs["none"]),
            shown=points == "all",
        )
