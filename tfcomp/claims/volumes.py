"""C9 and C10: how the manifold is stretched, in the region and outside.

The code has a border effect of its own, the same for every seed: a bump that
the edge of the grid cuts has another log-volume. What a network adds to it is
what is left after the code's value is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence

from tfcomp.claims.claim_pictures import VOLUME
from tfcomp.claims.claim_pictures import draw_spread
from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.decoders import find_bumps
from tfcomp.claims.decoders import find_mlp
from tfcomp.claims.estimation import estimate
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.factorization import CODES
from tfcomp.claims.fitted import support
from tfcomp.claims.numbers import average
from tfcomp.claims.numbers import combine_stages
from tfcomp.claims.numbers import correlate_ranks
from tfcomp.claims.numbers import drop_code
from tfcomp.claims.numbers import subtract_code
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import differs

# Log-volumes that differ by less are the same for our purpose: 10 % of the
# volume.
VOLUME_MARGIN = 0.1

Stages = dict[str, float | None]
_read_spread = combine_stages(
    "log_volume_sd_ood", "log_volume_sd_id", lambda ood, known: ood - known
)


def read_spread(run: Run) -> Stages:
    """Spread of log-volume, OOD less ID, less that of the code; by stage."""
    return subtract_code(_read_spread(run))


def read_warp(run: Run) -> Stages:
    """Size of the same. Signs differ between stages and would cancel."""
    return {
        stage: None if value is None else abs(value)
        for stage, value in read_spread(run).items()
    }


def read_difference(run: Run) -> Stages:
    """Mean log-volume, OOD less ID, less that of the code; by stage."""
    return subtract_code(run.get_stages("log_volume_difference"))


def average_warp(run: Run) -> float | None:
    """Mean of this size over the stages after the code."""
    return average(read_warp(run))


def grow_warp(run: Run) -> float | None:
    """Rank correlation of this size with the stage after the code."""
    return correlate_ranks(drop_code(read_warp(run)))


def judge_c9(evidence: Evidence) -> list[Part]:
    """Spread of log-volume, OOD against ID."""
    parts = []
    for code in CODES:
        group = find_bumps(evidence, code)
        parts += [
            make_part(
                f"donut, {code}, warp",
                "standard deviation of log-volume, OOD less ID, less that of "
                "the code: size, mean over stages",
                estimate(group, average_warp),
                above(VOLUME_MARGIN),
                **support(group),
            ),
            make_part(
                f"donut, {code}, growth",
                "rank correlation of this size with the stage after the code",
                estimate(group, grow_warp),
                above(0),
                **support(group),
            ),
        ]
    return parts


def draw_c9(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Spread of log-volume per stage: ID and OOD, and what is judged."""
    groups = {f"{code} code": find_bumps(evidence, code) for code in CODES}
    return draw_spread(groups) | draw_stages(
        {"": groups},
        read_spread,
        "spread, OOD - ID - code",
        "Standard deviation of log-volume over OOD points less that over ID "
        "points, less the same of the code, mean over seeds, with 95 % "
        "intervals. Its size is judged, seed by seed.",
    )


def judge_c10(evidence: Evidence) -> list[Part]:
    """Sign of the difference of mean log-volumes, CNN and MLP."""
    parts = []
    for code in CODES:
        rule = differs(VOLUME_MARGIN)
        cnn = judge_sign(f"CNN, {code}", find_bumps(evidence, code), rule)
        is_negative = cnn.estimate is not None and cnn.estimate.mean < 0
        rule = above(VOLUME_MARGIN) if is_negative else below(-VOLUME_MARGIN)
        unknown = "the sign for the CNN is not known"
        problem = "" if cnn.verdict == "reproduced" else unknown
        group = find_mlp(evidence, code)
        parts += [cnn, judge_sign(f"MLP, {code}", group, rule, problem)]
    return parts


def judge_sign(label: str, group: Group, rule: Rule, problem: str = "") -> Part:
    """Mean log-volume, OOD less ID, of one kind of network."""
    fitted = support(group)
    return make_part(
        label,
        "mean log-volume, OOD less ID, less that of the code, mean over stages",
        estimate(group, lambda run: average(read_difference(run))),
        rule,
        **fitted | {"problem": problem or fitted["problem"]},
    )


def draw_c10(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Difference of mean log-volumes per stage."""
    finders: dict[str, Callable] = {"CNN": find_bumps, "MLP": find_mlp}
    panels = {
        kind: {f"{code} code": find(evidence, code) for code in CODES}
        for kind, find in finders.items()
    }
    return draw_stages(
        panels,
        read_difference,
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
        judge_c9,
        draw_c9,
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
        judge_c10,
        draw_c10,
    ),
)
