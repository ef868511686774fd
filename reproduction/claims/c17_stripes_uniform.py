"""With stripes the manifold stays uniform.

Figure 4d.
"The representations remain relatively smooth and uniform even in the OOD
region, contrasting the models trained with just the bumps"
"""

from reproduction.claims import Evidence, Row, Rows
from reproduction.claims.c09_warp import LATE
from reproduction.claims.networks import (
    BUMPS_ALONE,
    LONG,
    STRIPES,
    judge_networks,
)

SEEDS = range(300, 400)
PRECISION = {"precision": "float32"}
NOTE = """
Networks with bumps alone less networks with stripes and 50 bumps, at equal
seeds and steps. Fading is not excluded (C9), and these networks do not
compose.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    flags = STRIPES | LONG | PRECISION | {"num_bumps": 50}
    striped = evidence.select(**flags, seed=SEEDS).placed
    alone = evidence.select(**BUMPS_ALONE, **PRECISION, seed=SEEDS).fitted
    for quantity, number in LATE.items():
        differences = alone.read(number) - striped.read(number)
        yield Row(
            part="difference",
            quantity=quantity,
            values=differences.dropna(),
            bound="> 0",
            tried=alone.tried,
        )
        parts = {"bumps alone": alone, "stripes": striped}
        for part, networks in parts.items():
            yield judge_networks(
                networks,
                number,
                part=part,
                quantity=quantity,
                shown=False,
            )
