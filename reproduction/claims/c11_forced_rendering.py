"""Forced rendering generalizes.

Figures 3b and 3c, section 4.1.
"our regularization works even for a corner OOD region"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import CENTRE, CORNER, select_penalties

SEEDS = {CORNER: range(100, 120), CENTRE: range(100, 110)}
NOTE = """
Unfitted networks count as failures, and none was started again. Other regions
were not tried; a smaller corner is easier.
"""


def composes(
    evidence: Evidence,
    runs: pd.DataFrame,
    accuracy: float = 0.95,
    error: float = 0.1,
) -> pd.Series:
    """Reads 1 for each run that composes, and 0 for others, by seed.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
        accuracy: Position accuracy in OOD that is exceeded.
        error: Relative MSE in OOD that is not reached.
    """
    in_place = evidence.score(runs, "ood/position_accuracy") > accuracy
    is_right = evidence.score(runs, "ood/relative_mse") < error
    is_fitted = evidence.score(runs, "id/relative_mse") < 0.05
    return (in_place & is_right & is_fitted).astype(float)


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for region, seeds in SEEDS.items():
        runs = select_penalties(evidence, seeds, region)
        yield judge_number(
            part=region,
            quantity="share of seeds that compose",
            values=composes(evidence, runs["both"]),
            bound="> 0.5",
            controls={"no penalties": composes(evidence, runs["none"])},
            by="share",
        )
