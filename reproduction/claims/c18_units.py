"""Units go from stripes to bumps.

Figures 4e, 4f and 15.
"exhibits “stripes” in early layers, which localizes to become a “bump” in
downstream layers"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import (
    ALL_SEEDS,
    SHORT,
    STRIPES,
    Reader,
    read_change,
)

SEEDS = range(300, 320)
COUNTS = (0, 10, 50, 100)
NOTE = """
Product units count oblique ridges as well as bumps. Stripes and bumps among all
live units are not measured in these networks, but in published ones (table
below).
"""


def read_last(evidence: Evidence, runs: pd.DataFrame) -> pd.Series:
    """Reads products less sums at the last hidden stage.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
    """
    stages = evidence.stages(runs, "product_less_sum")
    return stages.drop(columns=["code", "image"]).iloc[:, -1]


def lose_stripes(
    evidence: Evidence, runs: pd.DataFrame, when: str = "end"
) -> pd.Series:
    """Reads the share of stripes, first hidden stage less the last.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        when: `start` for the untrained networks, or `end`.
    """
    of_x = read_change("stripe_x_share")(evidence, runs, when)
    return -of_x - read_change("stripe_y_share")(evidence, runs, when)


QUANTITIES: dict[str, Reader] = {
    "product less sum units, last less first hidden": read_change(
        "product_less_sum"
    ),
    "stripes among live units, first less last hidden": lose_stripes,
    "bumps among live units, last less first hidden": read_change("bump_share"),
}


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    flags = STRIPES | SHORT | {"precision": "float32"}
    every = flags | {"num_bumps": 784, "train_all": True}
    trained = evidence.placed(evidence.select(**every, seed=ALL_SEEDS))
    for count in COUNTS:
        runs = evidence.select(**flags, num_bumps=count, seed=SEEDS)
        placed = evidence.placed(runs)
        for quantity, read in QUANTITIES.items():
            yield judge_number(
                part=f"{count} bumps",
                quantity=quantity,
                values=read(evidence, placed, "end"),
                bound="> 0",
                tried=len(runs),
                controls={
                    ALL: read(evidence, trained, "end"),
                    UNTRAINED: read(evidence, placed, "start"),
                },
                shown=count == 50,
            )
