"""Hard rendering composes.

Ours, not the paper's.
"""

from functools import partial

from reproduction.claims import Evidence, Rows
from reproduction.claims.c11_forced_rendering import composes
from reproduction.claims.networks import (
    BUMPS,
    CENTRE,
    CORNER,
    NONE,
    judge_networks,
)

SEEDS = range(100, 110)
HARD = BUMPS | {"model": "hard_rendering", "noise": 0.0, "sigma": 1.5}
AXES = {"given": "x:columns,y:rows", "found": "find"}
# The same networks without forced rendering.
MATRICES = NONE | {"axes": "x:none,y:none"}
NOTE = """
Position accuracy above .99 and relative MSE below .02. A training that does
not fit ID is started again with other weights: restarts are counted in
claims.csv (5 of 20 runs with axes given, which compose in all seeds as well).
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for words, axes in AXES.items():
        for region in (CORNER, CENTRE):
            flags = HARD | {"axes": axes, "region": region, "restarts": 3}
            networks = evidence.select(**flags, seed=SEEDS)
            again = networks.score("train/attempts/1/seed").notna().sum()
            matrices = evidence.select(**(flags | MATRICES), seed=SEEDS)
            yield judge_networks(
                networks,
                partial(composes, accuracy=0.99, error=0.02),
                {"matrices": matrices},
                missing="the same networks without forced rendering",
                part=f"{region}, axes {words}",
                quantity="share of seeds that compose",
                bound="> 0.5",
                by="share",
                remark=f"{again} of {networks.tried} started again",
                shown=words == "found",
            )
