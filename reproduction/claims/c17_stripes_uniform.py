"""With stripes the manifold stays uniform.

Figure 4d.
"The representations remain relatively smooth and uniform even in the OOD
region, contrasting the models trained with just the bumps"
"""

from collections.abc import Iterator

from reproduction.claims.c09_warp import QUANTITIES, read_trend
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import BUMPS_ALONE, LONG, STRIPES

SEEDS = range(300, 400)
NOTE = """
Networks with bumps alone less networks with stripes and 50 bumps, at equal
seeds and steps. Fading is not excluded (C9), and these networks do not
compose.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    precision = {"precision": "float32"}
    flags = STRIPES | LONG | precision | {"num_bumps": 50}
    striped = evidence.placed(evidence.select(**flags, seed=SEEDS))
    runs = evidence.select(**BUMPS_ALONE, **precision, seed=SEEDS)
    alone = evidence.fitted(runs)
    for quantity, read in QUANTITIES.items():
        if read is read_trend:
            continue
        alone_warp = read(evidence, alone, "end")
        striped_warp = read(evidence, striped, "end")
        yield judge_number(
            part="difference",
            quantity=quantity,
            values=(alone_warp - striped_warp).dropna(),
            bound="> 0",
            tried=len(runs),
        )
        for part, values in {
            "bumps alone": alone_warp,
            "stripes": striped_warp,
        }.items():
            yield judge_number(
                part=part,
                quantity=quantity,
                values=values,
                tried=len(runs),
                shown=False,
            )
