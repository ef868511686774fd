"""Few bumps turn the plus into a bump.

Figures 4b and 7b.
"as we increase the number of 2D Gaussian bump images included in the training
dataset, the model learns to generate proper bumps in the OOD region"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import SHORT, STRIPES
from tfcomp.statistics.limits import CORRELATION, SHARE

SEEDS = range(300, 320)
COUNTS = (0, 10, 50, 100)
NOTE = """
In float32 and 1,000 steps. The error falls with the number of bumps, but at
100 bumps it is not below a blank image's. Missing: three times as many steps
with 0, 10 and 100 bumps, and which shape is nearest.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    errors = {}
    nearest = {}
    tried = 0
    for count in COUNTS:
        flags = STRIPES | SHORT | {"num_bumps": count, "precision": "float32"}
        runs = evidence.select(**flags, seed=SEEDS)
        placed = evidence.placed(runs)
        errors[count] = evidence.score(placed, "ood/relative_mse")
        nearest[count] = evidence.score(placed, "nearest_bump_share")
        tried = len(runs)
    table = pd.DataFrame(errors).dropna()
    order = pd.Series(range(len(COUNTS)), COUNTS)
    yield judge_number(
        part="0 to 100 bumps",
        quantity="rank correlation, error and bumps",
        values=table.T.corrwith(order, method="spearman"),
        bound="< 0",
        tried=tried,
        limits=CORRELATION,
    )
    for count in COUNTS:
        yield judge_number(
            part=f"{count} bumps",
            quantity="OOD error, a blank image has 1",
            values=errors[count],
            bound="< 1" if count == COUNTS[-1] else "",
            tried=tried,
            by="geometric mean",
            shown=count == COUNTS[-1],
        )
    yield judge_number(
        part="100 bumps",
        quantity="share of outputs nearest to a true bump",
        values=nearest[100],
        bound="> 0.5",
        tried=tried,
        controls={"0 bumps": nearest[0]},
        limits=SHARE,
    )
