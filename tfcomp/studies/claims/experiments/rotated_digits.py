"""C19 and C20: a rotated digit with a gap."""

import functools
from collections.abc import Sequence

from tfcomp.statistics.limits import CORRELATION, POSITIVE
from tfcomp.studies.claims import claim_pictures
from tfcomp.studies.claims.claim import FITTED, Number, measure
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.run_numbers import reduce_stages, subtract
from tfcomp.studies.claims.selection import Setting, region_is
from tfcomp.studies.claims.verdict import Part, above, below

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
OVER_TRUTH = subtract("edge_r2", "edge_truth_r2")
INTERPOLATION = [
    Number(
        quantity,
        read,
        above(bound),
        decides=read == "edge_r2",
        limits=CORRELATION if callable(read) else None,
    )
    for quantity, read, bound in (
        ("R² on the two edge images, mean over the gap", "edge_r2", 0.8),
        ("the same, with linear weights", "edge_linear_r2", 0.8),
        ("the same, at the worst angle", "edge_r2_min", 0.8),
        ("the same, less that of the true images", OVER_TRUTH, 0),
        (
            "rank correlation of the error and the distance to the edge",
            "border_rank_correlation",
            0,
        ),
    )
]
# Measures of the curve inside the gap over outside, by what they say.
JUMPS = {"longest step": "gap_max_speed", "sharpest turn": "gap_max_turning"}
SMOOTHNESS = tuple(
    Number(
        f"{words} in the gap over that outside, largest of all stages",
        reduce_stages(max, name),
        below(JUMP),
        name.removeprefix("gap_max_"),
        limits=POSITIVE,
    )
    for words, name in JUMPS.items()
)


def judge_gap(evidence: Evidence, numbers: Sequence[Number]) -> list[Part]:
    """Judges numbers of the rotated digit; the label says which gap it is."""
    group = ROTATED.find(evidence)
    label = "rotated digit"
    if group.runs:
        label += f", {group.runs[0].flags['region']}"
    return measure(label, [group], numbers, [FITTED])


def draw_errors(evidence: Evidence) -> claim_pictures.Figures:
    """Error against angle."""
    group = ROTATED.find(evidence)
    columns = claim_pictures.list_columns(group, "curve_mse")
    return claim_pictures.draw_lines(
        group.runs[0].get_list("curve_values") if columns else [],
        {"mean over seeds": columns},
        xlabel="angle (degrees)",
        ylabel="MSE over pixels",
        caption="MSE at every angle, with 95 % intervals over seeds.",
        logy=True,
    )


def draw_jumps(evidence: Evidence) -> claim_pictures.Figures:
    """Longest step and sharpest turn per stage."""
    groups = {"rotated digit": ROTATED.find(evidence)}
    return claim_pictures.draw_stages(
        {title: (groups, name) for title, name in JUMPS.items()},
        "inside the gap / outside",
        "Inside the gap over outside, per stage, mean over seeds, with 95 % "
        "intervals.",
    )


TESTS = {
    "C19": [functools.partial(judge_gap, numbers=INTERPOLATION)],
    "C20": [functools.partial(judge_gap, numbers=SMOOTHNESS)],
}
PICTURES = {"C19": draw_errors, "C20": draw_jumps}
