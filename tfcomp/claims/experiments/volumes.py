"""C9 and C10: how the manifold is stretched, in the region and outside.

The code has a border effect of its own, the same for every seed: a bump that
the edge of the grid cuts has another log-volume. What a network adds to it is
what is left after the code's value is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.claims.claim import FITTED
from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import Gate
from tfcomp.claims.claim import Number
from tfcomp.claims.claim import measure
from tfcomp.claims.claim_pictures import VOLUME
from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.claim_pictures import draw_spread
from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.experiments.decoders import MAIN_CODES
from tfcomp.claims.experiments.decoders import find_donuts
from tfcomp.claims.experiments.decoders import make_cnn
from tfcomp.claims.experiments.decoders import make_mlp
from tfcomp.claims.experiments.decoders import measure_donut
from tfcomp.claims.run_numbers import Stages
from tfcomp.claims.run_numbers import average
from tfcomp.claims.run_numbers import difference
from tfcomp.claims.run_numbers import minus
from tfcomp.claims.run_numbers import rank_with_stage
from tfcomp.claims.run_numbers import subtract_code
from tfcomp.claims.selection import Condition
from tfcomp.claims.verdict import Part
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import differs
from tfcomp.statistics.limits import CORRELATION
from tfcomp.statistics.limits import POSITIVE

# Log-volumes that differ by less are the same for our purpose: 10 % of the
# volume.
VOLUME_MARGIN = 0.1


def read_spread(run: Run) -> Stages:
    """Standard deviation, OOD less ID, less the same of the code."""
    within = run.get_stages("log_volume_sd_id")
    outside = run.get_stages("log_volume_sd_ood")
    return subtract_code(
        {stage: minus(sd, within.get(stage)) for stage, sd in outside.items()}
    )


def read_warp(run: Run) -> Stages:
    """Its size: signs differ between stages and would cancel in a mean."""
    return {s: v if v is None else abs(v) for s, v in read_spread(run).items()}


def read_shift(run: Run) -> Stages:
    """Mean, OOD less ID, less the same of the code."""
    return subtract_code(run.get_stages("log_volume_difference"))


WARP = (
    Number(
        "standard deviation of log-volume, OOD less ID, less that of the "
        "code: size, mean over stages",
        average(read_warp),
        above(VOLUME_MARGIN),
        "warp",
        limits=POSITIVE,
    ),
    Number(
        "rank correlation of this size with the stage after the code",
        rank_with_stage(read_warp),
        above(0),
        "growth",
        limits=CORRELATION,
    ),
)
# Is log-volume more even in the second of two groups? (C13, C17)
UNEVENNESS = tuple(
    Number(
        f"standard deviation of log-volume over {where} points, mean over "
        "stages",
        difference(average(name)),
        above(0),
        decides=where == "all",
    )
    for where, name in (("all", "log_volume_sd"), ("OOD", "log_volume_sd_ood"))
)


def make_shift(rule: Rule) -> Number:
    """Whether networks expand (> 0) or compress the region."""
    return Number(
        "mean log-volume, OOD less ID, less that of the code, mean over stages",
        average(read_shift),
        rule,
    )


def judge_signs(
    evidence: Evidence,
    gates: Sequence[Gate] = (FITTED,),
    words: str = "",
    *,
    decides: bool = True,
    **must: Condition,
) -> list[Part]:
    """C10: the MLP beyond a margin of the other sign than the CNN's.

    Args:
        evidence: The runs.
        gates: What training must have reached.
        words: What the labels add to this.
        decides: Whether the claim depends on these runs.
        **must: Further flags of the runs.
    """
    parts = []
    for code in MAIN_CODES:
        group = make_cnn(code).require(**must).find(evidence)
        shift = make_shift(differs(VOLUME_MARGIN))
        label = f"CNN, {code}{words}"
        (cnn,) = measure(label, [group], [shift], gates, decides=decides)
        is_negative = cnn.estimate is not None and cnn.estimate.mean < 0
        rule = above(VOLUME_MARGIN) if is_negative else below(-VOLUME_MARGIN)
        is_known = cnn.verdict is Verdict.REPRODUCED
        (mlp,) = measure(
            f"MLP, {code}{words}",
            [make_mlp(code).require(**must).find(evidence)],
            [make_shift(rule)],
            gates if is_known else [],
            "" if is_known else "the sign for the CNN is not known",
            decides=decides,
        )
        parts += [cnn, mlp]
    return parts


def draw_warp(evidence: Evidence) -> Figures:
    """Spread of log-volume per stage: ID and OOD, and what is judged."""
    groups = find_donuts(evidence)
    return draw_spread(groups) | draw_stages(
        {"": (groups, read_spread)},
        "spread, OOD - ID - code",
        "Standard deviation of log-volume over OOD points less that over ID "
        "points, less the same of the code, mean over seeds, with 95 % "
        "intervals. Its size is judged, seed by seed.",
    )


def draw_signs(evidence: Evidence) -> Figures:
    """Difference of mean log-volumes per stage."""
    mlps = {f"{c} code": make_mlp(c).find(evidence) for c in MAIN_CODES}
    return draw_stages(
        {"CNN": (find_donuts(evidence), read_shift), "MLP": (mlps, read_shift)},
        f"{VOLUME}, OOD - ID - code",
        "Mean log-volume over OOD points less that over ID points, less the "
        "same of the code, mean over seeds, with 95 % intervals. Below 0: the "
        "network compresses the region.",
    )


CLAIMS = (
    Claim(
        "C9",
        "The manifold warps in the held-out region",
        "Volume is distorted in the region, and more so with depth.",
        "figures 2e, 2f, section 3.4",
        "OOD less ID departs from the code's by more than 0.1, and more with "
        "the stage",
        "Standard deviation of log-volume (natural logarithm) over OOD points "
        "less that over ID points, at every stage after the code, less the "
        "same of the code, which has a border effect of its own. Of the size "
        "of this: mean over the stages, and Spearman with the stage.",
        measure_donut(*WARP),
        draw_warp,
    ),
    Claim(
        "C10",
        "MLPs warp in the opposite sense",
        "Where CNNs compress the region, MLPs expand it, or the reverse.",
        "appendix F.3",
        "mean log-volume OOD - ID, less the code's: CNN beyond ±0.1, MLP "
        "beyond 0.1 of the other sign",
        "Mean over the stages after the code. The code's own value is "
        "subtracted: it is not 0, and the same for every network.",
        [judge_signs],
        draw_signs,
    ),
)
