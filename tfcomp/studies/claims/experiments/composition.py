"""C1 to C5, C21: disentangled inputs are not enough; what happens instead."""

from dataclasses import replace

from tfcomp.statistics.estimates import estimate_geometric
from tfcomp.statistics.limits import SHARE, Limits
from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims.claim import Check, Declaration, Number
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.volumes import is_full_length

ERROR = Number(
    "OOD relative MSE (1: blank), geometric mean",
    "ood/relative_mse",
    above(0.5),
    by=estimate_geometric,
)
# A faint bump at the right place has the error of a failure.
MISPLACED = Number(
    "share of OOD positions in place",
    "ood/position_accuracy",
    below(0.95),
    "in place",
    limits=SHARE,
)
BORDER = Number(
    "rank correlation of OOD error and distance to ID",
    "border_rank_correlation",
    above(0.5),
)
WHOLE = replace(ERROR, name="error")
SHARED = "R² of OOD outputs on ID outputs sharing x or y"
RIVALS = {
    "rival": "the nearest ID outputs sharing neither",
    "single": "ID outputs sharing one factor alone",
}


def list_memories(ending: str = "") -> list[Number]:
    """Returns numbers on what outputs share with memories of x or of y.

    Those at near points stand beside: mere overlap of bumps explains them. With
    the ending `_centered`, the fit has a constant.
    """
    # Untrained networks share as much with bump codes.
    learned = Number(
        f"{SHARED}, net of the start",
        f"sharing_far_r2{ending}",
        above(0.1),
        "far, over the start",
        net=True,
    )
    return [
        *_list_sharing("far", ending),
        *_list_sharing("near", ending),
        learned,
    ]


def _list_sharing(where: str, ending: str) -> list[Number]:
    decides, shared = where == "far", f"sharing_{where}_r2{ending}"
    own = Number(SHARED, shared, above(0.5), f"{where}, R²", decides=decides)
    margins = [
        Number(
            f"{SHARED}, less R² on {words}",
            shared,
            above(0.1),
            f"{where}, margin over {rival}",
            less=f"{rival}_{where}_r2{ending}",
            decides=decides,
        )
        for rival, words in RIVALS.items()
    ]
    return [own, *margins]


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


MLPS = {
    f"MLP, {code}": decoders.make_mlp(code).require(epochs=is_full_length)
    for code in decoders.MAIN_CODES
}

CLAIMS = {
    "C1": Declaration([Check(decoders.ALL_DONUTS, [ERROR, MISPLACED])]),
    "C2": Declaration([Check(MLPS, [ERROR, MISPLACED])]),
    # An error that rises with the distance must be an error.
    "C3": Declaration([Check(decoders.BUMP_DONUT, [BORDER, WHOLE])]),
    "C4": Declaration(
        [Check(decoders.DONUTS, list_memories())],
        unseen=[Check(decoders.DONUTS, list_memories("_centered"))],
    ),
    "C5": Declaration([Check(decoders.DONUTS, [BEST_KERNEL, MISPLACED])]),
    "C21": Declaration([Check(decoders.BUMP_DONUT, PEAKS)]),
}
