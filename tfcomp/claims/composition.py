"""C1 to C5: disentangled inputs are not enough, and what happens instead."""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.claims.curve_pictures import draw_border_curves
from tfcomp.claims.decoders import CODES
from tfcomp.claims.decoders import KINDS
from tfcomp.claims.decoders import MLP
from tfcomp.claims.decoders import find_bumps
from tfcomp.claims.decoders import find_mlp
from tfcomp.claims.estimation import estimate
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.fitted import support
from tfcomp.claims.numbers import score
from tfcomp.claims.numbers import subtract
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

# Parts beside C4: points, and weights.
FAR = "at least 4 px from ID"
SPAN = "any weights"


def judge_failure(
    label: str, group: Group, required: bool = True
) -> list[Part]:
    """Does a fitted network fail OOD? (C1, C2)"""
    accuracy = score("ood/position_accuracy")
    shared = support(group)
    return [
        make_part(
            label,
            "OOD relative MSE (1: blank)",
            estimate(group, score("ood/relative_mse")),
            above(0.5),
            required=required,
            **shared,
        ),
        beside(
            make_part(
                label,
                "OOD position accuracy",
                estimate(group, accuracy),
                below(0.5),
                **shared,
            )
        ),
    ]


def judge_c1(evidence: Evidence) -> list[Part]:
    """Every code, donut and corner."""
    parts = []
    for region in KINDS:
        for code in CODES:
            group = find_bumps(evidence, code, region)
            required = region == "donut" or code in ("bump", "ramp")
            parts += judge_failure(f"{region}, {code}", group, required)
    return parts


def judge_c2(evidence: Evidence) -> list[Part]:
    """MLPs, bump and ramp."""
    return [
        part
        for code in MLP
        for part in judge_failure(f"MLP, {code}", find_mlp(evidence, code))
    ]


def judge_c3(evidence: Evidence) -> list[Part]:
    """Error against distance to ID; the claim is about bump codes."""
    parts = []
    for code in ("bump", "ramp"):
        group = find_bumps(evidence, code)
        part = make_part(
            f"donut, {code}",
            "rank correlation of OOD error and distance to ID",
            estimate(group, score("border_rank_correlation")),
            above(0),
            **support(group),
        )
        parts.append(part if code == "bump" else beside(part))
    return parts


def draw_c3(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Error at every distance from the border."""
    return draw_border_curves(parts)


def judge_c4(evidence: Evidence) -> list[Part]:
    """Superposition of memorized outputs against a conjunctive predictor."""
    parts = []
    for code in ("bump", "ramp"):
        group = find_bumps(evidence, code)
        label = f"donut, {code}"
        parts += judge_superposition(group, label)
        far = judge_superposition(group, f"{label}, {FAR}", "far_")
        span = judge_superposition(group, f"{label}, {SPAN}", "span_")
        parts += map(beside, [*far, *span])
        peaks = estimate(group, score("ood/num_peaks"))
        quantity = "peaks per OOD image"
        part = make_part(label, quantity, peaks, above(1), **support(group))
        parts.append(beside(part))
    return parts


def judge_superposition(
    group: Group, label: str, infix: str = ""
) -> list[Part]:
    """R² of the superposition, and its margin over the rival."""
    both = f"superposition_{infix}r2", f"conjunctive_{infix}r2"
    return [
        make_part(
            f"{label}, R²",
            "R² of OOD outputs on ID outputs sharing x and y",
            estimate(group, score(both[0])),
            above(0.5),
            **support(group),
        ),
        make_part(
            f"{label}, margin",
            "the same, less that on the nearest ID outputs",
            estimate(group, subtract(*both)),
            above(0),
            **support(group),
        ),
    ]


def judge_c5(evidence: Evidence) -> list[Part]:
    """Alignment with ideal kernels over OOD points."""
    parts = []
    for code in ("bump", "ramp"):
        group = find_bumps(evidence, code)
        shared = support(group)
        comparisons = {
            ("conjunctive", "less that with the conjunctive kernel"): (
                "alignment_factorized",
                "alignment_conjunctive",
            ),
            ("constant", "less that with a constant kernel (0)"): (
                "alignment_factorized",
                "alignment_constant",
            ),
            (
                "radial",
                "with the width of a bump, less that with a radial kernel",
            ): (
                "alignment_factorized_smooth",
                "alignment_radial",
            ),
        }
        for (short, against), names in comparisons.items():
            part = make_part(
                f"donut, {code}, {short}",
                f"alignment with the factorized kernel, {against}",
                estimate(group, subtract(*names)),
                above(0),
                **shared,
            )
            parts.append(beside(part) if short == "radial" else part)
    return parts


CLAIMS = (
    Claim(
        "C1",
        "Disentangled codes do not compose",
        "A decoder that is given x and y as separate codes (bump, ramp, "
        "one-hot, positional) draws what it was trained on and fails at "
        "combinations that it never saw.",
        "figures 1b, 1c, section 3.2",
        "ID relative MSE < 0.05 (else it proves nothing), and OOD > 0.5",
        "CNN decoders, every code, the centre (donut) or a corner held out. "
        "Relative MSE is that of a blank image at 1. One-hot and positional "
        "codes with a corner held out count if they were run.",
        judge_c1,
    ),
    Claim(
        "C2",
        "Neither do fully connected decoders",
        "MLP decoders fail at unseen combinations as CNNs do.",
        "appendix F.3, figures 13, 14",
        "as C1",
        "MLP decoders with bump and ramp codes, the centre held out.",
        judge_c2,
    ),
    Claim(
        "C3",
        "Bump codes generalize near the border",
        "With bump codes, images are partly right near the border of the "
        "held-out region, where bumps overlap with trained ones.",
        "figure 1b, section 3.2",
        "rank correlation of OOD error and distance to ID > 0",
        "Spearman over all OOD positions, one number a run; distance to the "
        "nearest ID position in grid steps.",
        judge_c3,
        draw_c3,
    ),
    Claim(
        "C4",
        "Unseen combinations are superpositions of memories",
        "Asked for an unseen (x, y), a decoder adds what it memorized for "
        "this x and what it memorized for this y.",
        "figure 1d, section 3.3",
        "R² > 0.5, and above a conjunctive predictor",
        "R² about zero of every OOD output on two means of the network's own "
        "ID outputs: those sharing x and those sharing y; as rival, on two "
        "means of the nearest ID outputs (in a square hole they share x or y, "
        "too). All OOD positions decide; beside them those where no "
        "neighbour's bump overlaps, the same with nonnegative weights of "
        "every single ID output, and peaks per image.",
        judge_c4,
    ),
    Claim(
        "C5",
        "The learned kernel is binary factorized",
        "Similarities of OOD outputs are those of a kernel that counts "
        "sharing x and sharing y by halves.",
        "figures 1e, 8, equations 3, 4",
        "alignment highest for the binary factorized kernel",
        "Centred alignment of the cosines of all pairs of OOD outputs with "
        "ideal kernels. Centring leaves nothing of a constant kernel: its "
        "alignment is 0. Beside it, with the width of a bump for the deltas, "
        "where the conjunctive kernel is a radial one.",
        judge_c5,
    ),
)
