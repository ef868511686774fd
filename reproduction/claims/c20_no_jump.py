"""The stages do not jump at the gap.

Figure 9b.
"the UMAP-embedded latent representations across the network layers remain
smooth without significant deformation"
"""

from collections.abc import Iterator

from reproduction.claims.c19_interpolation import DIGIT
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from tfcomp.statistics.limits import POSITIVE

SEEDS = range(100, 105)
NAMES = {"longest step": "gap_max_speed", "sharpest turn": "gap_max_turning"}
NOTE = """
The sentence denies a jump. Untrained networks have none either, as they must.
A control must jump: networks on a digit that is mirrored beyond the gap are
missing.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    runs = evidence.select(**DIGIT, seed=SEEDS)
    fitted = evidence.fitted(runs)
    for words, name in NAMES.items():
        stages = evidence.stages(fitted, name).drop(columns="code")
        yield judge_number(
            part=words,
            quantity="largest in the gap over largest outside",
            values=stages.max(axis=1),
            bound="< 2",
            tried=len(runs),
            limits=POSITIVE,
            missing="networks that jump",
        )
