"""C19 and C20: a rotated digit with a gap."""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.claim_pictures import read_stages
from tfcomp.claims.curve_pictures import draw_error_curve
from tfcomp.claims.estimation import estimate
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.fitted import support
from tfcomp.claims.numbers import largest
from tfcomp.claims.numbers import score
from tfcomp.claims.numbers import subtract
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import find_group
from tfcomp.claims.selection import make_reference
from tfcomp.claims.selection import region_is
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

# A jump is a step, or a turn, this many times the largest outside the gap.
JUMP = 2.0


def find_rotation(evidence: Evidence) -> Group:
    """Networks that draw one rotated MNIST digit with a gap."""
    must = {
        "dataset": "rotated_digits",
        "digit_source": "mnist",
        "digit_classes": "",
        "region": region_is("gap"),
    }
    return find_group(evidence, make_reference("rotated_mnist.flags"), must)


def judge_c19(evidence: Evidence) -> list[Part]:
    """R² of outputs in the gap on the images at its edges."""
    group = find_rotation(evidence)
    numbers = (
        ("R² on the two edge images, mean over the gap", score("edge_r2"), 0.8),
        ("the same, with linear weights", score("edge_linear_r2"), 0.8),
        ("the same, at the worst angle", score("edge_r2_min"), 0.8),
        (
            "the same, less that of the true images",
            subtract("edge_r2", "edge_truth_r2"),
            0.0,
        ),
        (
            "rank correlation of the error and the distance to the edge",
            score("border_rank_correlation"),
            0.0,
        ),
    )
    parts = [
        make_part(
            label_gap(group),
            quantity,
            estimate(group, number),
            above(bound),
            **support(group),
        )
        for quantity, number, bound in numbers
    ]
    return [parts[0], *map(beside, parts[1:])]


def draw_c19(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Error against angle."""
    return draw_error_curve(find_rotation(evidence), "angle (degrees)")


def judge_c20(evidence: Evidence) -> list[Part]:
    """The longest step and the sharpest turn in the gap, over all stages."""
    group = find_rotation(evidence)
    numbers = {
        "longest step in the gap over that outside": "gap_max_speed",
        "sharpest turn in the gap over that outside": "gap_max_turning",
    }
    return [
        make_part(
            f"{label_gap(group)}, {name.removeprefix('gap_max_')}",
            f"{quantity}, largest of all stages",
            estimate(group, largest(name)),
            below(JUMP),
            **support(group),
        )
        for quantity, name in numbers.items()
    ]


def draw_c20(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Gap statistics per stage."""
    group = find_rotation(evidence)
    names = {
        "longest step": "gap_max_speed",
        "sharpest turn": "gap_max_turning",
    }
    return draw_stages(
        {
            title: {"rotated digit": (group, read_stages(name))}
            for title, name in names.items()
        },
        None,
        "inside the gap / outside",
        "Inside the gap over outside, per stage, mean over seeds, with 95 % "
        "intervals.",
    )


def label_gap(group: Group) -> str:
    """Which gap it is."""
    if not group.runs:
        return "rotated digit"
    return f"rotated digit, {group.runs[0].flags['region']}"


CLAIMS = (
    Claim(
        "C19",
        "In a gap, outputs interpolate its edges",
        "At angles that it never saw, a network draws the interpolation of "
        "the images at the two edges of the gap.",
        "figures 9a, 9c, 9d, appendix F.2",
        "R² > 0.8 in pixel space",
        "R² about zero of every output in the gap on the two edge images, "
        "best weights, mean over the gap. Beside it: turned digits overlap, so "
        "that true images would score something, too.",
        judge_c19,
        draw_c19,
    ),
    Claim(
        "C20",
        "The stages do not jump at the gap",
        "The curves that stages trace as the digit turns stay smooth across "
        "the gap.",
        "figure 9b",
        "no step and no turn twice the largest one outside",
        "Steps between the activations at neighbouring angles and angles "
        "between steps: largest inside the gap over largest outside, of the "
        "stage where that is largest.",
        judge_c20,
        draw_c20,
    ),
)
