"""The stages do not jump at the gap.

Figure 9b.
"the UMAP-embedded latent representations across the network layers remain
smooth without significant deformation"
"""

from functools import partial

from pandas import Series

from reproduction.claims import Evidence, Networks, Rows
from reproduction.claims.c19_interpolation import DIGIT
from reproduction.claims.networks import judge_networks
from tfcomp.statistics.limits import POSITIVE

SEEDS = range(100, 105)
NAMES = {"longest step": "gap_max_speed", "sharpest turn": "gap_max_turning"}
NOTE = """
The sentence denies a jump. Untrained networks have none either, as they must.
A control must jump: networks on a digit that is mirrored beyond the gap are
missing.
"""


def read_largest(networks: Networks, name: str) -> Series:
    """Reads the largest of a number over the stages after the code.

    Args:
        networks: The networks that are read.
        name: The number at each stage.
    """
    return networks.stages(name).drop(columns="code").max(axis=1)


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    fitted = evidence.select(**DIGIT, seed=SEEDS).fitted
    for words, name in NAMES.items():
        yield judge_networks(
            fitted,
            partial(read_largest, name=name),
            part=words,
            quantity="largest in the gap over largest outside",
            bound="< 2",
            limits=POSITIVE,
            missing="networks that jump",
        )
