"""Stripes alone draw a plus.

Figure 4b.
"models trained on a dataset consisting of just the stripes are able to
compositionally generalize to generate additive stripe conjunctions in the OOD
region"
"""

from collections.abc import Iterator

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import UNTRAINED, Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import BUMPS_ALONE, SHORT, STRIPES
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
image, and not one stripe: the last row decides. It is measured in a published
network alone (table below), which draws a plus at .22 of the positions.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    flags = STRIPES | SHORT | PRECISION | {"num_bumps": 0}
    runs = evidence.select(**flags, seed=SEEDS)
    alone = evidence.select(**BUMPS_ALONE, **PRECISION, seed=SEEDS)
    placed = evidence.placed(runs)
    share = (evidence.score(runs, "ood/position_accuracy") > 0.95) * 1.0
    other = (evidence.score(alone, "ood/position_accuracy") > 0.95) * 1.0
    yield judge_number(
        part="corner:14",
        quantity="share of seeds with OOD peaks within 1 px",
        values=share,
        bound="> 0.5",
        controls={"bumps alone": other},
        by="share",
    )
    yield judge_number(
        part="corner:14",
        quantity="error against a plus, a blank image has 1",
        values=evidence.score(placed, "ood_plus/relative_mse"),
        bound="< 1",
        tried=len(runs),
        limits=POSITIVE,
    )
    for quantity, (name, bound) in OUTPUTS.items():
        yield judge_number(
            part="corner:14",
            quantity=quantity,
            values=evidence.score(placed, name),
            bound=bound,
            tried=len(runs),
            controls={UNTRAINED: evidence.score(placed, name, "start")},
            limits=SHARE,
            shown=bool(bound),
        )
