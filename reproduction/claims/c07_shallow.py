"""Shallow ramp networks drop more sharply.

Figure 2, section 3.4.
"shallow networks with ramp-based encoding experiences a sharper drop in
factorization"
"""

from collections.abc import Iterator

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import DONUT

SEEDS = range(200, 220)
SETTING = DONUT | {"encoding": "ramp", "width": 32, "epochs": 150}


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    drops, tried = {}, []
    for depth in (2, 6):
        flags = SETTING | {"depth": depth, "learning_rate": 0.004}
        runs = evidence.select(**flags, seed=SEEDS)
        tried.append(len(runs))
        stages = evidence.stages(evidence.fitted(runs), "factorization")
        drops[depth] = -stages.diff(axis=1).min(axis=1)
    yield judge_number(
        part="ramp, depth 2 less 6",
        quantity="largest drop of F in one stage",
        values=(drops[2] - drops[6]).dropna(),
        bound="> 0",
        tried=min(tried),
    )
