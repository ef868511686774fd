"""Forced rendering generalizes.

Figures 3b and 3c, section 4.1.
"our regularization works even for a corner OOD region"
"""

from pandas import Series

from reproduction.claims import Evidence, Networks, Rows
from reproduction.claims.networks import (
    CENTRE,
    CORNER,
    judge_networks,
    select_penalties,
)

SEEDS = {CORNER: range(100, 120), CENTRE: range(100, 110)}
NOTE = """
Unfitted networks count as failures, and none was started again. Other regions
were not tried; a smaller corner is easier.
"""


def composes(
    networks: Networks,
    accuracy: float = 0.95,
    error: float = 0.1,
) -> Series:
    """Reads 1 for each network that composes, and 0 for others, by seed.

    Args:
        networks: The networks that are read.
        accuracy: Position accuracy in OOD that is exceeded.
        error: Relative MSE in OOD that is not reached.
    """
    in_place = networks.score("ood/position_accuracy") > accuracy
    is_right = networks.score("ood/relative_mse") < error
    is_fitted = networks.score("id/relative_mse") < 0.05
    return (in_place & is_right & is_fitted).astype(float)


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for region, seeds in SEEDS.items():
        networks = select_penalties(evidence, seeds, region)
        yield judge_networks(
            networks["both"],
            composes,
            {"no penalties": networks["none"]},
            part=region,
            quantity="share of seeds that compose",
            bound="> 0.5",
            by="share",
        )
