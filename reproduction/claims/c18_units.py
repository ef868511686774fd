"""Units go from stripes to bumps.

Figures 4e, 4f and 15.
"exhibits “stripes” in early layers, which localizes to become a “bump” in
downstream layers"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Row, open_row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import ALL_SEEDS, SHORT, STRIPES

SEEDS = range(300, 320)
COUNTS = (0, 10, 50, 100)
NOTE = """
Product units count oblique ridges as well as bumps, and networks that were
trained on a bump at every position rise by {rows[0].controls[trained on
all].number.mean:.2f}.
"""


def read_last(evidence: Evidence, runs: pd.DataFrame) -> pd.Series:
    """Reads products less sums at the last hidden stage.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
    """
    stages = evidence.stages(runs, "product_less_sum")
    return stages.drop(columns=["code", "image"]).iloc[:, -1]


def rise(
    evidence: Evidence, runs: pd.DataFrame, when: str = "end"
) -> pd.Series:
    """Reads products less sums, last hidden stage less the first.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
    """
    stages = evidence.stages(runs, "product_less_sum", when)
    hidden = stages.drop(columns=["code", "image"])
    return hidden.iloc[:, -1] - hidden["stage_0"]


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    flags = STRIPES | SHORT | {"precision": "float32"}
    all_flags = flags | {"num_bumps": 784, "train_all": True}
    trained = evidence.placed(evidence.select(**all_flags, seed=ALL_SEEDS))
    for count in COUNTS:
        runs = evidence.select(**flags, num_bumps=count, seed=SEEDS)
        placed = evidence.placed(runs)
        yield judge_number(
            part=f"{count} bumps",
            quantity="product less sum units, last less first hidden",
            values=rise(evidence, placed),
            bound="> 0",
            tried=len(runs),
            controls={
                ALL: rise(evidence, trained),
                UNTRAINED: rise(evidence, placed, "start"),
            },
            shown=count == 50,
        )
    yield open_row(
        part="all counts",
        quantity="shares of stripes, bumps and others by stage",
        missing="three types of units, all active units counted",
    )
