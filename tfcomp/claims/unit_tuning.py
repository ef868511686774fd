"""C18: units go from stripes to conjunctions."""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.claim_pictures import read_stages
from tfcomp.claims.estimation import estimate
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.numbers import rank_with_stage
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.stripe_training import find_few_shot
from tfcomp.claims.verdict import below

NAMES = {
    "additive_share": "mean over units",
    "additive_share_weighted": "units weighted by variance",
}


def judge_c18(evidence: Evidence) -> list[Part]:
    """Additive share against stage, for every number of bumps."""
    series = find_few_shot(evidence)
    parts = []
    for count, group in (series or {50: Group()}).items():
        for name, label in NAMES.items():
            part = make_part(
                f"stripes and {count} bumps",
                f"rank correlation of the additive share ({label}) with the "
                "stage",
                estimate(group, rank_with_stage(name)),
                below(0),
                groups=(group,),
            )
            is_main = name == "additive_share"
            parts.append(part if is_main else beside(part))
    return parts


def draw_c18(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Additive share per stage."""
    series = find_few_shot(evidence)
    return draw_stages(
        {"": {f"{count} bumps": group for count, group in series.items()}},
        read_stages("additive_share"),
        "additive share of variance",
        "Additive share per stage (1: stripes, 0: conjunctions), mean over "
        "seeds, with 95 % intervals.",
    )


CLAIMS = (
    Claim(
        "C18",
        "Units go from stripes to bumps",
        "In networks trained on stripes, units of early stages answer to one "
        "factor, those of late stages to combinations.",
        "figures 4e, 4f, 15",
        "rank correlation of the additive share with the stage < 0",
        "Share of a unit's variance over the grid that a sum of a function of "
        "x and one of y explains; Spearman over the stages after the code, "
        "which is additive by construction.",
        judge_c18,
        draw_c18,
    ),
)
