"""C1 to C5: disentangled inputs are not enough, and what happens instead."""

from __future__ import annotations

from tfcomp.claims.claim import FITTED
from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import Measured
from tfcomp.claims.claim import Number
from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.claim_pictures import draw_lines
from tfcomp.claims.claim_pictures import list_columns
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments.decoders import CODE_FLAGFILES
from tfcomp.claims.experiments.decoders import HELD_OUT
from tfcomp.claims.experiments.decoders import MAIN_CODES
from tfcomp.claims.experiments.decoders import make_cnn
from tfcomp.claims.experiments.decoders import make_mlp
from tfcomp.claims.experiments.decoders import measure_donut
from tfcomp.claims.run_numbers import subtract
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.statistics.limits import CORRELATION
from tfcomp.statistics.limits import Limits

FAILURE = (
    Number("OOD relative MSE (1: blank)", "ood/relative_mse", above(0.5)),
    Number(
        "OOD position accuracy",
        "ood/position_accuracy",
        below(0.5),
        decides=False,
    ),
)
BORDER = Number(
    "rank correlation of OOD error and distance to ID",
    "border_rank_correlation",
    above(0),
)
# Over all points; over those that no trained bump overlaps; and with a weight
# of its own for every output, which recognizes other ways to superpose.
SUPERPOSITION = [
    number
    for name, infix in (
        ("", ""),
        ("at least 4 px from ID, ", "far_"),
        ("any weights, ", "span_"),
    )
    for r2, rival in [(f"superposition_{infix}r2", f"conjunctive_{infix}r2")]
    for number in (
        Number(
            "R² of OOD outputs on ID outputs sharing x and y",
            r2,
            above(0.5),
            f"{name}R²",
            decides=not name,
        ),
        Number(
            "the same, less that on the nearest ID outputs",
            subtract(r2, rival),
            above(0),
            f"{name}margin",
            decides=not name,
            limits=CORRELATION,
        ),
    )
]
PEAKS = Number("peaks per OOD image", "ood/num_peaks", above(1), decides=False)
# How much better a factorized kernel fits than others.
ALIGNMENT = [
    Number(
        f"alignment with the factorized kernel, {width}less that with {name}",
        subtract(f"alignment_{ours}", f"alignment_{rival}"),
        above(0),
        rival,
        decides=not width,
        limits=Limits(-2, 2),
    )
    for ours, width, rival, name in (
        ("factorized", "", "conjunctive", "the conjunctive kernel"),
        ("factorized", "", "constant", "a constant kernel (0)"),
        (
            "factorized_smooth",
            "with the width of a bump, ",
            "radial",
            "a radial kernel",
        ),
    )
]


def draw_border(evidence: Evidence) -> Figures:
    """OOD error at every distance from ID."""
    lines = {}
    for code in MAIN_CODES:
        group = make_cnn(code).find(evidence)
        lines[f"donut, {code}"] = list_columns(group, "border_relative_mse")
    size = max(map(len, lines.values()))
    figures = draw_lines(
        range(1, size + 1),
        lines,
        xlabel="distance to the nearest ID position (grid steps)",
        ylabel="OOD MSE / blank",
        caption="OOD error, as a multiple of a blank image's, against the "
        "distance to ID; mean over positions and seeds, with 95 % intervals "
        "over seeds.",
    )
    for figure in figures.values():
        figure.axes[0].xaxis.get_major_locator().set_params(integer=True)
    return figures


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
        [
            Measured(
                f"{region}, {code}",
                make_cnn(code, region),
                FAILURE,
                [FITTED],
                required=region == "donut" or code in MAIN_CODES,
            )
            for region in HELD_OUT
            for code in CODE_FLAGFILES
        ],
    ),
    Claim(
        "C2",
        "Neither do fully connected decoders",
        "MLP decoders fail at unseen combinations as CNNs do.",
        "appendix F.3, figures 13, 14",
        "as C1",
        "MLP decoders with bump and ramp codes, the centre held out.",
        [
            Measured(f"MLP, {code}", make_mlp(code), FAILURE, [FITTED])
            for code in MAIN_CODES
        ],
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
        [
            Measured(
                f"donut, {code}",
                make_cnn(code),
                [BORDER],
                [FITTED],
                decides=code == "bump",
            )
            for code in MAIN_CODES
        ],
        draw_border,
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
        measure_donut(*SUPERPOSITION, PEAKS),
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
        measure_donut(*ALIGNMENT),
    ),
)
