"""C1 to C5, C21: disentangled inputs are not enough; what happens instead."""

from tfcomp.statistics.estimates import estimate_geometric
from tfcomp.statistics.limits import SHARE, Limits
from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims import claim_pictures
from tfcomp.studies.claims.claim import Check, Number
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.volumes import is_full_length

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
SHARED = "R² of OOD outputs on ID outputs sharing x or y"
RIVALS = {
    "rival": "the nearest ID outputs sharing neither",
    "single": "those sharing one factor alone",
}


def list_sharing(where: str) -> list[Number]:
    """Returns numbers on what outputs at far, or near, points share."""
    decides, shared = where == "far", f"sharing_{where}_r2"
    own = Number(SHARED, shared, above(0.5), f"{where}, R²", decides=decides)
    margins = [
        Number(
            f"the same, less that on {words}",
            shared,
            above(0.1),
            f"{where}, margin over {rival}",
            less=f"{rival}_{where}_r2",
            decides=decides,
        )
        for rival, words in RIVALS.items()
    ]
    return [own, *margins]


# Nearer points, beside them, are explained by mere overlap of bumps.
SHARING = [*list_sharing("far"), *list_sharing("near")]
# What training adds: untrained networks share as much with bump codes.
LEARNED = Number(
    f"{SHARED}, net of the start",
    "sharing_far_r2",
    above(0.1),
    "far, over the start",
    net=True,
)
# Earlier measures counted faint noise as peaks, and no images without a peak.
PEAKS = [
    *(
        Number(
            f"share of {split.upper()} images with two peaks or more",
            f"multiple_peaks_{split}",
            above(0.5),
            split.upper(),
            needs="no_peak_ood",
            decides=split == "ood",
            limits=SHARE,
        )
        for split in ("ood", "id")
    ),
    Number(
        "share of OOD images without any peak",
        "no_peak_ood",
        below(0.5),
        "none",
        decides=False,
        limits=SHARE,
    ),
]
BEST_KERNEL = Number(
    "alignment with the best additive kernel, less that with the best radial",
    "alignment_additive_best",
    above(0.02),
    less="alignment_radial_best",
    limits=Limits(-2, 2),
)


def draw_border(evidence: Evidence) -> claim_pictures.Figures:
    """Draws the OOD error at every distance from ID."""
    lines = {
        label: claim_pictures.list_columns(
            setting.find(evidence.groups).get_places("border_relative_mse")
        )
        for label, setting in decoders.DONUTS.items()
    }
    figures = claim_pictures.draw_lines(
        range(1, max(map(len, lines.values())) + 1),
        lines,
        xlabel="distance to the nearest ID position (grid steps)",
        ylabel="OOD MSE / blank",
        caption="OOD error, as a multiple of a blank image's, against the "
        "distance to ID; mean over positions and seeds, with 95 % intervals "
        "over seeds.",
    )
    for figure in figures.values():
        figure.axes[0].locator_params(axis="x", integer=True)
    return figures


MLPS = {
    f"MLP, {code}": decoders.make_mlp(code).require(epochs=is_full_length)
    for code in decoders.MAIN_CODES
}
TESTS = {
    "C1": [Check(decoders.ALL_DONUTS, [ERROR])],
    "C2": [Check(MLPS, [ERROR])],
    "C3": [Check(decoders.BUMP_DONUT, [BORDER])],
    "C4": [Check(decoders.DONUTS, [*SHARING, LEARNED])],
    "C5": [Check(decoders.DONUTS, [BEST_KERNEL])],
    "C21": [Check(decoders.BUMP_DONUT, PEAKS)],
}
PAPER: dict[str, list[Check]] = {}
PICTURES = {"C3": draw_border}
