"""In a gap, outputs interpolate its edges.

Figures 9a, 9c and 9d, appendix F.2.
"the model performs linear interpolation between the edge-most ID samples"
"""

from collections.abc import Iterator

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import UNTRAINED, Row
from reproduction.claims.judge import judge as judge_number
from tfcomp.statistics.limits import AT_MOST_ONE

SEEDS = range(300, 310)
DIGIT = {
    "dataset": "rotated_digits",
    "digit_classes": "",
    "digit_source": "mnist",
    "region": "gap:angle:160-200",
    "train_all": False,
}
MISSING = "networks trained on all angles"
NOTE = """
True images of this digit have {rows[2].number.mean:.2f} on the best weights,
and outputs {rows[1].number.mean:.2f} more. A smooth image that truly rotates
can be above .8 as well, so that networks trained on all angles must decide.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    runs = evidence.select(**DIGIT, seed=SEEDS)
    fitted = evidence.fitted(runs)
    yield judge_number(
        part="gap 160 to 200°",
        quantity="R² on both edges, linear",
        values=evidence.score(fitted, "edge_linear_r2"),
        bound="> 0.8",
        tried=len(runs),
        controls={UNTRAINED: evidence.score(fitted, "edge_linear_r2", "start")},
        limits=AT_MOST_ONE,
        missing=MISSING,
    )
    truth = evidence.score(fitted, "edge_truth_r2")
    yield judge_number(
        part="gap 160 to 200°",
        quantity="R² on both edges, less that of true images",
        values=evidence.score(fitted, "edge_r2") - truth,
        bound="> 0",
        tried=len(runs),
        shown=False,
    )
    yield judge_number(
        part="gap 160 to 200°",
        quantity="R² of true images on both edges",
        values=truth,
        tried=len(runs),
        limits=AT_MOST_ONE,
        shown=False,
    )
