"""C14, C15, C17 and C18, version 2: what stripes teach, net of the start."""

from __future__ import annotations

from tfcomp.claims.claim import EACH_FITTED
from tfcomp.claims.claim import EACH_PLACED
from tfcomp.claims.claim import Compared
from tfcomp.claims.claim import Measured
from tfcomp.claims.claim import Number
from tfcomp.claims.claim import measure
from tfcomp.claims.estimation import estimate_geometric
from tfcomp.claims.estimation import estimate_share
from tfcomp.claims.estimation import estimate_trend
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments import stripe_training as first
from tfcomp.claims.families import Series
from tfcomp.claims.fresh.geometry import read_warp
from tfcomp.claims.fresh_claim import Control
from tfcomp.claims.fresh_claim import Kind
from tfcomp.claims.fresh_claim import Scores
from tfcomp.claims.fresh_claim import plant
from tfcomp.claims.fresh_claim import revise
from tfcomp.claims.run_numbers import average_late
from tfcomp.claims.run_numbers import difference
from tfcomp.claims.run_numbers import list_stages
from tfcomp.claims.run_numbers import net
from tfcomp.claims.run_numbers import subtract_start
from tfcomp.claims.run_numbers import take_change
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import Setting
from tfcomp.claims.verdict import Part
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

COUNTS = (0, 10, 50, first.MANY_BUMPS)
# Steps that decide, and how they are trained: epochs and steps of one.
LENGTHS = {"1,000 steps": (25, 40), "3,150 steps": (50, 63)}
FEW_BUMPS = 50
SHARES_AT_START = [1.0, 0.6, 0.55, 0.5, 0.5]
STRIPES = first.make_stripes("bump")

PLACED = Number(
    "seeds with OOD position accuracy > 0.95",
    lambda run: (
        None
        if (found := run.get("ood/position_accuracy")) is None
        else found > 0.95
    ),
    above(0.5),
    by=estimate_share,
)
TREND = Number(
    "rank correlation of OOD relative MSE with the number of bumps",
    lambda *runs: [run.get("ood/relative_mse") for run in runs],
    below(0),
    "trend",
    by=estimate_trend,
)
ERROR = Number(
    "OOD relative MSE (1: blank), geometric mean",
    "ood/relative_mse",
    below(0.5),
    by=estimate_geometric,
)
UNIFORMITY = Number(
    "mean of |log V - its median over ID|, OOD less ID, net of the start, "
    "later half of the stages",
    difference(net(average_late(read_warp))),
    above(0.1),
)
SHARES = (
    Number(
        "additive share, last hidden stage less stage 0, net of the start",
        net(take_change("additive_share", -1)),
        below(-0.1),
        "fall",
    ),
    Number(
        "additive share net of the start, rank correlation with the stage",
        list_stages(subtract_start("additive_share"), -1),
        below(0),
        "trend",
        by=estimate_trend,
    ),
)


def make_length(epochs: int, steps_per_epoch: int) -> Setting:
    """Stripes and any number of bumps, trained so long."""
    return first.STRIPED.require(epochs=epochs, steps_per_epoch=steps_per_epoch)


def judge_counts(evidence: Evidence) -> list[Part]:
    """C15: after 1,000 steps, which decide, and after 3,150."""
    parts = []
    for words, length in LENGTHS.items():
        series = Series(make_length(*length), "num_bumps", COUNTS)
        found = series.find(evidence)
        decides = words == "1,000 steps"
        missing = [str(n) for n in COUNTS if not found.get(n, Group()).runs]
        problem = f"no run with {', '.join(missing)} bumps" if missing else ""
        groups = [found.get(count, Group()) for count in COUNTS]
        parts += [
            *measure(words, groups, [TREND], problem=problem, decides=decides),
            *measure(
                f"{words}, {COUNTS[-1]} bumps",
                groups[-1:],
                [ERROR],
                decides=decides,
            ),
        ]
    return parts


def judge_shares(evidence: Evidence) -> list[Part]:
    """C18: every number of bumps of one series."""
    series = first.COUNTS.find(evidence) or {FEW_BUMPS: Group()}
    return [
        part
        for count, group in series.items()
        for part in measure(
            f"stripes and {count} bumps", [group], SHARES, [EACH_PLACED]
        )
    ]


def plant_counts(name: str, kind: Kind, *errors: float) -> Control:
    """A control of C15 by the OOD error with 0, 10, 50 and 100 bumps."""
    planted = [
        (
            make_length(*LENGTHS["1,000 steps"]).require(num_bumps=count),
            {"ood/relative_mse": error},
        )
        for count, error in zip(COUNTS, errors, strict=True)
    ]
    return plant(name, kind, *planted)


def plant_uniformity(name: str, kind: Kind, striped: float) -> Control:
    """A control of C17 by the warp with stripes; it is 1 without."""
    arms = first.UNIFORMITY.settings
    return plant(
        name,
        kind,
        (arms["bumps only"].require(polarity="bright"), _make_warp(1.0)),
        (
            arms["stripes and bumps"].require(
                num_bumps=FEW_BUMPS, epochs=50, steps_per_epoch=63
            ),
            _make_warp(striped),
        ),
    )


def _make_warp(height: float) -> Scores:
    outside, within = "log_volume_deviation_ood", "log_volume_deviation_id"
    zero = [0.0] * 5
    starts = {f"start/{name}": zero for name in (outside, within)}
    return {**starts, outside: [0.0, *[height] * 4], within: zero}


def plant_shares(name: str, kind: Kind, values: list[float]) -> Control:
    """A control of C18 by the additive share at every stage."""
    setting = make_length(*LENGTHS["1,000 steps"]).require(num_bumps=FEW_BUMPS)
    start = {"start/additive_share": SHARES_AT_START}
    return plant(name, kind, (setting, {"additive_share": values, **start}))


C14, C15, C17, C18 = first.CLAIMS
CLAIMS = (
    revise(
        C14,
        "OOD position accuracy > 0.95 in most seeds: lower bound of their "
        "share > 0.5",
        [Measured("stripes only, bump", STRIPES, [PLACED])],
        "CNN, bump code, corner held out, no bump in training.",
        [
            plant(name, kind, (STRIPES, {"ood/position_accuracy": share}))
            for name, kind, share in (
                ("a plus at the right place", Kind.POSITIVE, 1.0),
                ("a bump anywhere", Kind.NEGATIVE, 0.05),
            )
        ],
    ),
    revise(
        C15,
        "OOD relative MSE falls with 0, 10, 50, 100 bumps (Page, p < 0.05), "
        "and is < 0.5 at 100; in 1,000 steps",
        [judge_counts],
        "Seeds are blocks. After 3,150 steps, beside it.",
        [
            plant_counts("a fall", Kind.POSITIVE, 6.0, 2.0, 0.6, 0.2),
            plant_counts("bumps change nothing", Kind.NEGATIVE, *[6.0] * 4),
        ],
    ),
    revise(
        C17,
        "C9's number, bumps alone less stripes and 50 bumps, > 0.1",
        [
            Compared(
                "corner, bumps only less stripes and bumps",
                first.UNIFORMITY,
                ("bumps only", "stripes and bumps"),
                [UNIFORMITY],
                [EACH_FITTED, EACH_PLACED],
            )
        ],
        "The same corner, equal seeds, equal steps, net of the start.",
        [
            plant_uniformity("even with stripes", Kind.POSITIVE, 0.2),
            plant_uniformity("as warped as without", Kind.NEGATIVE, 1.0),
        ],
    ),
    revise(
        C18,
        "additive share falls by more than 0.1 from stage 0 to the last "
        "hidden stage, net of the start, stage by stage (Page)",
        [judge_shares],
        "",
        [
            plant_shares("a fall", Kind.POSITIVE, [1, 0.7, 0.5, 0.3, 0.2]),
            plant_shares("as at the start", Kind.NEGATIVE, SHARES_AT_START),
        ],
    ),
)
