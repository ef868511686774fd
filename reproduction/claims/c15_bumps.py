"""Few bumps turn the plus into a bump.

Figures 4b and 7b.
"as we increase the number of 2D Gaussian bump images included in the training
dataset, the model learns to generate proper bumps in the OOD region"
"""

import pandas as pd

from reproduction.claims import Evidence, Row, Rows
from reproduction.claims.networks import SHORT, STRIPES, Flags, judge_networks
from tfcomp.statistics.limits import CORRELATION, SHARE

SEEDS = range(300, 320)
# Rows of networks with three times the steps follow once they were trained.
STEPS: dict[str, Flags] = {
    "": SHORT | {"seed": SEEDS},
    ", 3,000 steps": SHORT | {"epochs": 75, "seed": range(320, 340)},
}
BOUNDS = {0: "", 10: "", 50: "", 100: "< 1"}  # of errors, by bumps
ERROR = "ood/relative_mse"
NOTE = """
In float32 and 1,000 steps. The error falls with the number of bumps, but at
100 bumps it is not below a blank image's. Missing: three times as many steps
with 0, 10 and 100 bumps, and which shape is nearest.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for words, steps in STEPS.items():
        flags = STRIPES | steps | {"precision": "float32"}
        placed = {}
        errors = {}
        for count in BOUNDS:
            placed[count] = evidence.select(**flags, num_bumps=count).placed
            errors[count] = placed[count].score(ERROR)
        if words and not placed[100].tried:
            continue
        table = pd.DataFrame(errors).dropna()
        order = pd.Series(range(len(BOUNDS)), list(BOUNDS))
        yield Row(
            part=f"0 to 100 bumps{words}",
            quantity="rank correlation, error and bumps",
            values=table.T.corrwith(order, method="spearman"),
            bound="< 0",
            tried=placed[100].tried,
            limits=CORRELATION,
        )
        for count, bound in BOUNDS.items():
            yield judge_networks(
                placed[count],
                ERROR,
                part=f"{count} bumps{words}",
                quantity="OOD error, a blank image has 1",
                bound=bound,
                by="geometric mean",
                shown=bool(bound),
            )
        yield judge_networks(
            placed[100],
            "nearest_bump_share",
            {"0 bumps": placed[0]},
            part=f"100 bumps{words}",
            quantity="share of outputs nearest to a true bump",
            bound="> 0.5",
            limits=SHARE,
        )
