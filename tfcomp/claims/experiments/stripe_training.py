"""C14, C15, C17, C18: training on stripes, every factor by itself."""

from __future__ import annotations

from tfcomp.claims.claim import FITTED
from tfcomp.claims.claim import PLACED
from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import Compared
from tfcomp.claims.claim import Measured
from tfcomp.claims.claim import Number
from tfcomp.claims.claim import measure
from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.claim_pictures import draw_lines
from tfcomp.claims.claim_pictures import draw_spread
from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.experiments.decoders import MAIN_CODES
from tfcomp.claims.experiments.decoders import make_cnn
from tfcomp.claims.experiments.volumes import UNEVENNESS
from tfcomp.claims.families import Arms
from tfcomp.claims.families import Series
from tfcomp.claims.run_numbers import rank_with_stage
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import Setting
from tfcomp.claims.selection import is_positive
from tfcomp.claims.selection import region_is
from tfcomp.claims.verdict import Part
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.statistics.limits import CORRELATION
from tfcomp.statistics.seed_tests import correlate_ranks

MANY_BUMPS = 100
STRIPED = Setting(
    "stripes_and_bumps.flags",
    {
        "dataset": "stripes",
        "model": "cnn",
        "encoding": "bump",
        "region": region_is("corner"),
    },
)
# Bumps alone and stripes with bumps. Volumes spread as training goes on, so
# that both must be trained for as many steps.
UNIFORMITY = Arms(
    {
        "bumps only": make_cnn("bump", "corner"),
        "stripes and bumps": STRIPED.require(num_bumps=is_positive),
    },
    free=("dataset", "num_bumps", "epochs", "steps_per_epoch"),
    equal_steps=True,
)
# Stripes and different numbers of bumps, otherwise alike.
COUNTS = Series(STRIPED, "num_bumps")
COUNTS_TO_MANY = Series(STRIPED, "num_bumps", (MANY_BUMPS,))

# The first decides, for bump codes.
PLACE = Number("OOD position accuracy", "ood/position_accuracy", above(0.95))
PLUS = Number(
    "OOD MSE against the sum of two stripes, relative to blank",
    "ood_plus/relative_mse",
    below(1),
    decides=False,
)
SHARES = [
    Number(
        f"rank correlation of the additive share ({words}) with the stage",
        rank_with_stage(name),
        below(0),
        decides=name == "additive_share",
        limits=CORRELATION,
    )
    for words, name in (
        ("mean over units", "additive_share"),
        ("units weighted by variance", "additive_share_weighted"),
    )
]


def make_stripes(code: str) -> Setting:
    """CNNs trained on stripes alone, corner held out."""
    must = {**STRIPED.must, "encoding": code, "num_bumps": 0}
    return Setting("stripes.flags", must, (f"--encoding={code}",))


def judge_counts(evidence: Evidence) -> list[Part]:
    """C15: OOD error against the number of bumps, and at the most of them."""
    series = COUNTS_TO_MANY.find(evidence)

    def correlate(*runs: Run) -> float | None:
        return correlate_ranks([r.get("ood/mse") for r in runs], list(series))

    trend = Number(
        "rank correlation of OOD MSE and number of bumps",
        correlate,
        below(0),
        limits=CORRELATION,
    )
    error = Number(
        "OOD relative MSE (1: blank)", "ood/relative_mse", below(0.5)
    )
    counts = ", ".join(map(str, series)) or "more and more"
    return [
        *measure(
            f"stripes and {counts} bumps, trend",
            list(series.values()),
            [trend],
            problem="" if len(series) > 2 else "fewer than three numbers",
        ),
        *measure(
            f"stripes and {MANY_BUMPS} bumps, error",
            [series.get(MANY_BUMPS, Group())],
            [error],
        ),
    ]


def draw_counts(evidence: Evidence) -> Figures:
    """OOD error against the number of bumps."""
    series = COUNTS_TO_MANY.find(evidence)
    if len(series) < 2:
        return {}
    names = {"against true bumps": "ood", "against the plus": "ood_plus"}
    return draw_lines(
        list(series),
        {
            label: [
                [run.get(f"{split}/relative_mse") for run in group.runs]
                for group in series.values()
            ]
            for label, split in names.items()
        },
        xlabel="bumps in training, beside the stripes",
        ylabel="OOD MSE / blank",
        caption="OOD error, as a multiple of a blank image's, mean over "
        "seeds, with 95 % intervals.",
        logy=True,
    )


def draw_uniformity(evidence: Evidence) -> Figures:
    """Spread of log-volume per stage, with and without stripes."""
    groups = UNIFORMITY.find(evidence)
    alone = make_stripes("bump").find(evidence)
    if not any(UNIFORMITY.find_mismatch(g, alone) for g in groups.values()):
        groups["stripes only"] = alone
    return draw_spread(groups)


def judge_shares(evidence: Evidence) -> list[Part]:
    """C18: additive share against stage, for every number of bumps."""
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
        "C14",
        "Stripes alone compose",
        "A network that saw only stripes, one factor at a time and never a "
        "combination, draws a plus at the right place for every unseen pair.",
        "figure 4b",
        "OOD position accuracy > 0.95",
        "CNN, bump code, corner held out, no bump in training. Beside it, the "
        "error against the sum of two stripes, and ramp codes.",
        [
            Measured(
                f"stripes only, {code}",
                make_stripes(code),
                [PLACE, PLUS],
                decides=code == "bump",
            )
            for code in MAIN_CODES
        ],
    ),
    Claim(
        "C15",
        "Few bumps turn the plus into a bump",
        "With 10, 50, 100 bumps beside the stripes, outputs in the corner "
        "become proper bumps.",
        "figures 4b, 7b",
        "OOD MSE falls with the number of bumps; relative < 0.5 at 100",
        "Spearman of OOD MSE and number of bumps for every seed, over the "
        "numbers that were run (at least three).",
        [judge_counts],
        draw_counts,
    ),
    Claim(
        "C17",
        "With stripes the manifold stays uniform",
        "Volumes stay even over the whole grid, the held-out corner as well, "
        "in contrast to networks trained on bumps alone.",
        "figure 4d",
        "spread of log-volume smaller with stripes",
        "As C13: bumps only less stripes and bumps, the same corner, at "
        "equal seeds and after as many training steps. Networks on stripes "
        "must place the bumps of ID positions (accuracy > 0.95).",
        [
            Compared(
                "corner, bumps only less stripes and bumps",
                UNIFORMITY,
                ("bumps only", "stripes and bumps"),
                UNEVENNESS,
                gates=[FITTED, PLACED],
            )
        ],
        draw_uniformity,
    ),
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
