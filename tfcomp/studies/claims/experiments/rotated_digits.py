"""C19 and C20: a rotated digit with a gap."""

from tfcomp.statistics.limits import CORRELATION, POSITIVE
from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims.claim import Case, Check, Declaration, Number
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.tables.selection import Setting, region_is

# A jump is a step, or a turn, this many times the largest outside the gap.
JUMP = 2.0

ROTATED = Setting(
    "rotated_mnist.flags",
    {
        "dataset": "rotated_digits",
        "digit_source": "mnist",
        "digit_classes": "",
        "region": region_is("gap"),
    },
)
INTERPOLATION = [
    Number(
        "R² on the two edge images, mean over the gap", "edge_r2", above(0.8)
    ),
    # A copy of one edge passes the first number, a blend both.
    Number(
        "R² on the two edge images, with weights linear in the angle",
        "edge_linear_r2",
        above(0.8),
        "linear",
    ),
    Number(
        "R² on the two edge images, at the worst angle",
        "edge_r2_min",
        above(0.8),
        decides=False,
    ),
    Number(
        "R² on the two edge images, less R² of the true images",
        "edge_r2",
        above(0),
        less="edge_truth_r2",
        decides=False,
        limits=CORRELATION,
    ),
    Number(
        "rank correlation of the error and the distance to the edge",
        "border_rank_correlation",
        above(0),
        decides=False,
    ),
]
# A copy of the nearest edge explains images well, with other weights.
BLEND = Number(
    "R² of the weights of the edges on weights linear in the angle",
    "edge_weight_r2",
    above(0.5),
    "weights",
)
# Measures of the curve inside the gap over outside, by what they say.
JUMPS = {"longest step": "gap_max_speed", "sharpest turn": "gap_max_turning"}
SMOOTHNESS = tuple(
    Number(
        f"{words} in the gap over that outside, largest of all stages",
        name,
        below(JUMP),
        name.removeprefix("gap_max_"),
        over=max,
        limits=POSITIVE,
    )
    for words, name in JUMPS.items()
)


def find_digit(evidence: Evidence) -> list[Case]:
    """Returns the rotated digit; the label says which gap it is."""
    group = ROTATED.find(evidence.groups)
    label = "rotated digit"
    if len(group):
        label += f", {group.flags['region']}"
    return [Case(label, [group])]


CLAIMS = {
    "C19": Declaration(
        [Check(find_digit, INTERPOLATION)],
        [Check(find_digit, INTERPOLATION[1:2])],
        [Check(find_digit, [*INTERPOLATION, BLEND])],
    ),
    "C20": Declaration([Check(find_digit, SMOOTHNESS)]),
}
