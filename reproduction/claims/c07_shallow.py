"""Shallow ramp networks drop more sharply.

Figure 2, section 3.4.
"shallow networks with ramp-based encoding experiences a sharper drop in
factorization"
"""

from reproduction.claims import Evidence, Row, Rows
from reproduction.claims.networks import DONUT

SEEDS = range(200, 220)
SETTING = DONUT | {"encoding": "ramp", "width": 32, "epochs": 150}


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    drops = {}
    tried = []
    for depth in (2, 6):
        flags = SETTING | {"depth": depth, "learning_rate": 0.004}
        networks = evidence.select(**flags, seed=SEEDS).fitted
        tried.append(networks.tried)
        stages = networks.stages("factorization")
        drops[depth] = -stages.diff(axis=1).min(axis=1)
    yield Row(
        part="ramp, depth 2 less 6",
        quantity="largest drop of F in one stage",
        values=(drops[2] - drops[6]).dropna(),
        bound="> 0",
        tried=min(tried),
    )
