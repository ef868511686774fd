"""C1 to C5, C21: disentangled inputs are not enough; what happens instead."""

from tfcomp.statistics.limits import SHARE, Limits
from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.claim import Number
from tfcomp.studies.claims.claim_pictures import (
    Figures,
    draw_lines,
    list_columns,
)
from tfcomp.studies.claims.estimation import Read, estimate_geometric
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import measure_all
from tfcomp.studies.claims.experiments.volumes import is_full_length
from tfcomp.studies.claims.run_numbers import subtract
from tfcomp.studies.claims.verdict import above, below

ERROR = Number(
    "OOD relative MSE (1: blank), geometric mean",
    "ood/relative_mse",
    above(0.5),
    by=estimate_geometric,
)
BORDER = Number(
    "rank correlation of OOD error and distance to ID",
    "border_rank_correlation",
    above(0.5),
)
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
# What training adds: untrained networks share as much with bump codes.
LEARNED = Number(
    "R² of OOD outputs on ID outputs sharing x or y, net of the start",
    run_numbers.net(lambda run: run.get("sharing_far_r2")),
    above(0.1),
    "far, over the start",
)


def read_peaks(name: str) -> Read:
    """A share of images by their peaks, of bumps and not of faint noise.

    Earlier versions of the measures, which have no images without a peak,
    counted noise.
    """
    return lambda run: None if run.get("no_peak_ood") is None else run.get(name)


MULTIPLE_PEAKS = [
    Number(
        f"share of {split.upper()} images with two peaks or more",
        read_peaks(f"multiple_peaks_{split}"),
        above(0.5),
        split.upper(),
        decides=split == "ood",
        limits=SHARE,
    )
    for split in ("ood", "id")
]
NO_PEAK = Number(
    "share of OOD images without any peak",
    read_peaks("no_peak_ood"),
    below(0.5),
    "none",
    decides=False,
    limits=SHARE,
)
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


LONG_MLPS = {
    label: setting.require(epochs=is_full_length)
    for label, setting in decoders.MLPS.items()
}
TESTS = {
    name: measure_all(settings, *numbers)
    for name, settings, numbers in (
        ("C1", decoders.ALL_DONUTS, [ERROR]),
        ("C2", LONG_MLPS, [ERROR]),
        ("C3", decoders.BUMP_DONUT, [BORDER]),
        ("C4", decoders.DONUTS, [*SHARING, LEARNED]),
        ("C5", decoders.DONUTS, [BEST_KERNEL]),
        ("C21", decoders.BUMP_DONUT, [*MULTIPLE_PEAKS, NO_PEAK]),
    )
}
PICTURES = {"C3": draw_border}
