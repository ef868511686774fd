"""Hard rendering composes.

Ours, not the paper's.
"""

from collections.abc import Iterator

from reproduction.claims.c11_forced_rendering import composes
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import BUMPS, CENTRE, CORNER

SEEDS = range(100, 110)
HARD = BUMPS | {"model": "hard_rendering", "noise": 0.0, "sigma": 1.5}
AXES = {"given": "x:columns,y:rows", "found": "find"}
NOTE = """
Position accuracy above .99 and relative MSE below .02. A training that does
not fit ID is started again with other weights: restarts are counted in
claims.csv (5 of 20 runs with axes given, which compose in all seeds as well).
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for words, axes in AXES.items():
        for region in (CORNER, CENTRE):
            flags = HARD | {"axes": axes, "region": region, "restarts": 3}
            runs = evidence.select(**flags, seed=SEEDS)
            again = evidence.score(runs, "train/attempts/1/seed").notna().sum()
            yield judge_number(
                part=f"{region}, axes {words}",
                quantity="share of seeds that compose",
                values=composes(evidence, runs, accuracy=0.99, error=0.02),
                bound="> 0.5",
                by="share",
                note=f"{again} of {len(runs)} started again",
                shown=words == "found",
                missing="the same networks without forced rendering",
            )
