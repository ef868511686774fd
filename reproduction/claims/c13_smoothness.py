"""Penalties make the representation smoother.

Figure 3d.
"With regularization, the learned representation is significantly smoother than
without, as evidenced in Fig. 3(d)"
"""

from pandas import Series

from reproduction.claims import Evidence, Networks, Row, Rows
from reproduction.claims.networks import select_penalties

SEEDS = range(200, 240)
NAMES = {"all": "log_volume_sd", "OOD": "log_volume_sd_ood"}
NOTE = """
Mean over stages, fitted networks without a dead stage.
"""


def read_spread(networks: Networks, name: str = NAMES["all"]) -> Series:
    """Reads the sd of log-volumes over points, as a mean over stages.

    Args:
        networks: The networks that are read.
        name: The metric of stages, one of `NAMES`.
    """
    stages = networks.stages(name).drop(columns="code")
    return stages.mean(axis=1)


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    networks = select_penalties(evidence, SEEDS)
    for points, name in NAMES.items():
        spreads = {}
        for penalties in ("none", "both"):
            fitted = networks[penalties].fitted
            dead = fitted.stages("dead_fraction").max(axis=1)
            alive = fitted.keep(dead < 1)
            spreads[penalties] = read_spread(alive, name)
        yield Row(
            part=f"none less both, {points} points",
            quantity="sd of log-volume",
            values=(spreads["none"] - spreads["both"]).dropna(),
            bound="> 0",
            tried=networks["none"].tried,
            shown=points == "all",
        )
