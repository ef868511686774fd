"""C18: units go from stripes to conjunctions."""

from __future__ import annotations

from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import Number
from tfcomp.claims.claim import measure
from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments.stripe_training import STRIPED
from tfcomp.claims.families import Series
from tfcomp.claims.parts import Part
from tfcomp.claims.run_numbers import rank_with_stage
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import below

COUNTS = Series(STRIPED, "num_bumps")
SHARES = tuple(
    Number(
        f"rank correlation of the additive share ({words}) with the stage",
        rank_with_stage(name),
        below(0),
        decides=decides,
    )
    for words, name, decides in (
        ("mean over units", "additive_share", True),
        ("units weighted by variance", "additive_share_weighted", False),
    )
)


def judge_shares(evidence: Evidence) -> list[Part]:
    """Additive share against stage, for every number of bumps."""
    series = COUNTS.find(evidence) or {50: Group()}
    return [
        part
        for count, group in series.items()
        for part in measure(f"stripes and {count} bumps", [group], SHARES)
    ]


def draw_shares(evidence: Evidence) -> Figures:
    """Additive share per stage."""
    series = COUNTS.find(evidence)
    groups = {f"{count} bumps": group for count, group in series.items()}
    return draw_stages(
        {"": (groups, "additive_share")},
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
        [judge_shares],
        draw_shares,
    ),
)
