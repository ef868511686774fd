"""C1 to C5, C21: disentangled inputs are not enough; what happens instead."""

from tfcomp.statistics.limits import CORRELATION, Limits
from tfcomp.studies.claims.claim import EACH_FITTED, FITTED, Measured, Number
from tfcomp.studies.claims.claim_pictures import (
    Figures,
    draw_lines,
    list_columns,
)
from tfcomp.studies.claims.estimation import estimate_geometric
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import measure_all
from tfcomp.studies.claims.experiments.volumes import is_full_length
from tfcomp.studies.claims.run_numbers import subtract
from tfcomp.studies.claims.verdict import above, below

FAILURE = (
    Number("OOD relative MSE (1: blank)", "ood/relative_mse", above(0.5)),
    Number(
        "OOD position accuracy",
        "ood/position_accuracy",
        below(0.5),
        decides=False,
    ),
)
ERROR = Number(
    "OOD relative MSE (1: blank), geometric mean",
    "ood/relative_mse",
    above(0.5),
    by=estimate_geometric,
)
BORDER, FRESH_BORDER = (
    Number(
        "rank correlation of OOD error and distance to ID",
        "border_rank_correlation",
        above(bound),
    )
    for bound in (0, 0.5)
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
# Nearer points, beside them, are explained by mere overlap of bumps.
SHARING = [
    number
    for where in ("far", "near")
    for number in (
        Number(
            "R² of OOD outputs on ID outputs sharing x or y",
            f"sharing_{where}_r2",
            above(0.5),
            f"{where}, R²",
            decides=where == "far",
        ),
        *(
            Number(
                f"the same, less that on {others}",
                subtract(f"sharing_{where}_r2", f"{rival}_{where}_r2"),
                above(0.1),
                f"{where}, margin over {rival}",
                decides=where == "far",
            )
            for rival, others in (
                ("rival", "the nearest ID outputs sharing neither"),
                ("single", "those sharing one factor alone"),
            )
        ),
    )
]
PEAKS = Number("peaks per OOD image", "ood/num_peaks", above(1), decides=False)
MULTIPLE_PEAKS = [
    Number(
        f"share of {split.upper()} images with two peaks or more",
        f"multiple_peaks_{split}",
        above(0.5),
        split.upper(),
        decides=split == "ood",
    )
    for split in ("ood", "id")
]
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
BEST_KERNEL = Number(
    "alignment with the best additive kernel, less that with the best radial",
    subtract("alignment_additive_best", "alignment_radial_best"),
    above(0.02),
    limits=Limits(-2, 2),
)


def draw_border(evidence: Evidence) -> Figures:
    """OOD error at every distance from ID."""
    lines = {
        label: list_columns(setting.find(evidence), "border_relative_mse")
        for label, setting in decoders.DONUTS.items()
    }
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


TESTS = {
    "C1": [
        Measured(
            f"{region}, {code}",
            decoders.make_cnn(code, region),
            FAILURE,
            [FITTED],
            required=region == "donut" or code in decoders.MAIN_CODES,
        )
        for region in decoders.HELD_OUT
        for code in decoders.CODE_FLAGFILES
    ],
    "C2": measure_all(decoders.MLPS, *FAILURE),
    "C3": [
        Measured(label, setting, [BORDER], [FITTED], decides="bump" in label)
        for label, setting in decoders.DONUTS.items()
    ],
    "C4": measure_all(decoders.DONUTS, *SUPERPOSITION, PEAKS),
    "C5": measure_all(decoders.DONUTS, *ALIGNMENT),
}
LONG_MLPS = {
    label: setting.require(epochs=is_full_length)
    for label, setting in decoders.MLPS.items()
}
FRESH_TESTS = {
    name: measure_all(settings, *numbers, gate=EACH_FITTED)
    for name, settings, numbers in (
        ("C1", decoders.ALL_DONUTS, [ERROR]),
        ("C2", LONG_MLPS, [ERROR]),
        ("C3", decoders.BUMP_DONUT, [FRESH_BORDER]),
        ("C4", decoders.DONUTS, SHARING),
        ("C5", decoders.DONUTS, [BEST_KERNEL]),
        ("C21", decoders.BUMP_DONUT, MULTIPLE_PEAKS),
    )
}
PICTURES = {"C3": draw_border}
