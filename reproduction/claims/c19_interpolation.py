"""In a gap, outputs interpolate its edges.

Figures 9a, 9c and 9d, appendix F.2.
"the model performs linear interpolation between the edge-most ID samples"
"""

from pandas import Series

from reproduction.claims import ALL, UNTRAINED, Evidence, Networks, Rows
from reproduction.claims.networks import TRAIN_ALL, judge_networks
from tfcomp.statistics.limits import AT_MOST_ONE

SEEDS = range(300, 310)
DIGIT = {
    "dataset": "rotated_digits",
    "digit_classes": "",
    "digit_source": "mnist",
    "region": "gap:angle:160-200",
    "train_all": False,
}
GAP = "gap 160 to 200°"
NOTE = """
True images of this digit have {rows[2].number.mean:.2f} on the best weights,
and outputs {rows[1].number.mean:.2f} more. A smooth image that truly rotates
can be above .8 as well, so that networks trained on all angles must decide.
"""


def read_excess(networks: Networks) -> Series:
    """Reads R² of outputs on both edges, less that of true images."""
    return networks.score("edge_r2") - networks.score("edge_truth_r2")


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    fitted = evidence.select(**DIGIT, seed=SEEDS).fitted
    trained = evidence.select(**(DIGIT | TRAIN_ALL)).fitted
    yield judge_networks(
        fitted,
        "edge_linear_r2",
        {ALL: trained, UNTRAINED: fitted.untrained},
        missing="networks trained on all angles",
        part=GAP,
        quantity="R² on both edges, linear",
        bound="> 0.8",
        limits=AT_MOST_ONE,
    )
    yield judge_networks(
        fitted,
        read_excess,
        part=GAP,
        quantity="R² on both edges, less that of true images",
        bound="> 0",
        shown=False,
    )
    yield judge_networks(
        fitted,
        "edge_truth_r2",
        part=GAP,
        quantity="R² of true images on both edges",
        limits=AT_MOST_ONE,
        shown=False,
    )
