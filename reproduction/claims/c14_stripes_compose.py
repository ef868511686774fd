"""Stripes alone draw a plus.

Figure 4b.
"models trained on a dataset consisting of just the stripes are able to
compositionally generalize to generate additive stripe conjunctions in the OOD
region"
"""

from pandas import Series

from reproduction.claims import UNTRAINED, Evidence, Networks, Rows
from reproduction.claims.networks import (
    BUMPS_ALONE,
    SHORT,
    STRIPES,
    judge_networks,
)
from tfcomp.statistics.limits import POSITIVE, SHARE

SEEDS = range(200, 220)
PRECISION = {"precision": "mixed_bfloat16"}
# A number of held-out outputs, and its bound.
OUTPUTS = {
    "R² of the interaction part of OOD outputs": ("interaction_r2_ood", ""),
    "share of outputs nearest to a plus": ("nearest_plus_share", "> 0.5"),
}
NOTE = """
The control has bumps alone, for 3,150 steps. An error below 1 excludes a blank
image, and not one stripe: the last row decides. Peaks are where the stripes
cross, but most outputs are nearer to a bump there than to a plus; of single
seeds the share of a plus is 0 to .96.
"""


def is_in_place(networks: Networks) -> Series:
    """Reads 1 for each network with its OOD peaks in place, and 0 for others.

    Args:
        networks: The networks that are read.
    """
    accuracy = networks.score("ood/position_accuracy")
    return (accuracy > 0.95).astype(float)


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    flags = STRIPES | SHORT | PRECISION | {"num_bumps": 0}
    striped = evidence.select(**flags, seed=SEEDS)
    alone = evidence.select(**BUMPS_ALONE, **PRECISION, seed=SEEDS)
    placed = striped.placed
    yield judge_networks(
        striped,
        is_in_place,
        {"bumps alone": alone},
        part="corner:14",
        quantity="share of seeds with OOD peaks within 1 px",
        bound="> 0.5",
        by="share",
    )
    yield judge_networks(
        placed,
        "ood_plus/relative_mse",
        part="corner:14",
        quantity="error against a plus, a blank image has 1",
        bound="< 1",
        limits=POSITIVE,
    )
    for quantity, (name, bound) in OUTPUTS.items():
        yield judge_networks(
            placed,
            name,
            {UNTRAINED: placed.untrained},
            part="corner:14",
            quantity=quantity,
            bound=bound,
            limits=SHARE,
            shown=bool(bound),
        )
