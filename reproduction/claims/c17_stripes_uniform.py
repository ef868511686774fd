"""With stripes the manifold stays uniform.

Figure 4d.
"The representations remain relatively smooth and uniform even in the OOD
region, contrasting the models trained with just the bumps"
"""

from collections.abc import Iterator

from reproduction.claims.c09_warp import read_late, read_per_contrast
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
    warps = [read_late(evidence, networks) for networks in (alone, striped)]
    yield judge_number(
        part="difference",
        quantity="|log V - ID median|, OOD less ID, late stages",
        values=(warps[0] - warps[1]).dropna(),
        bound="> 0",
        tried=len(runs),
    )
    for part, values in zip(("bumps alone", "stripes"), warps, strict=True):
        yield judge_number(
            part=part,
            quantity="|log V - ID median|, OOD less ID, late stages",
            values=values,
            tried=len(runs),
            shown=False,
        )
    per_contrast = [
        read_per_contrast(evidence, chosen) for chosen in (alone, striped)
    ]
    yield judge_number(
        part="difference",
        quantity="this deviation per contrast, late stages",
        values=per_contrast[0] - per_contrast[1],
        bound="> 0",
        tried=len(runs),
        shown=False,
    )
