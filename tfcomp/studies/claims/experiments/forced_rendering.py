"""C11 to C13, C22: forced rendering, by penalties and by hard wiring."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from tfcomp.statistics.estimates import (
    estimate_fact,
    estimate_trend,
)
from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims.claim import (
    FITTED,
    Check,
    Declaration,
    Gate,
    Number,
    Versus,
    collect,
    find_met,
    log_ratio,
    make_share,
    minus,
)
from tfcomp.studies.claims.experiments.decoders import make_decoder
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Arms, Setting, is_positive

if TYPE_CHECKING:
    from pandas import Series

# Penalties: the flagfile, and the weights of entropy and variance.
PENALTIES = {
    "none": ("low_rank_none.flags", 0, 0),
    "entropy": ("low_rank_entropy.flags", is_positive, 0),
    "variance": ("low_rank_variance.flags", 0, is_positive),
    "both": ("low_rank.flags", is_positive, is_positive),
}
HELD_OUT = {"corner": "corner:12", "centre": "square:8-23"}
STEP = 1.25  # a smaller ratio of errors is none
APART = 5.0  # axes of a factor whose profiles differ by more are told apart
ERROR, ACCURACY = "ood/relative_mse", "ood/position_accuracy"


def make_low_rank(penalties: str, region: str = "corner") -> Setting:
    """Returns low-rank networks with some of `PENALTIES`, and a region.

    The basis of the variance penalty is of no importance without it.
    """
    flagfile, entropy, variance = PENALTIES[penalties]
    setting = make_decoder(
        flagfile,
        HELD_OUT[region],
        "--penalty_basis=raw",
        model="low_rank",
        entropy_weight=entropy,
        variance_weight=variance,
    )
    return setting.require(penalty_basis="raw") if variance else setting


def decay(penalties: str, region: str = "corner") -> Setting:
    """Returns the published ones, whose learning rate falls at the end."""
    setting = make_low_rank(penalties, region)
    return setting.require(epochs=1000, decay="linear", decay_share=0.2)


def make_hard(axes: str) -> dict[str, Setting]:
    """Returns hard rendering with a flag `axes` for each region."""
    words = "found" if axes == "find" else "given"
    return {
        f"{name}, axes {words}": make_decoder(
            "hard_rendering.flags",
            region,
            f"--axes={axes}",
            model="hard_rendering",
            axes=axes,
        )
        for name, region in HELD_OUT.items()
    }


def make_arms(*names: str) -> Arms:
    """Returns low-rank networks that differ in their penalties alone."""
    free = ("entropy_weight", "variance_weight", "penalty_basis")
    return Arms({name: make_low_rank(name) for name in names}, free)


ALL = make_arms(*PENALTIES)
EXTREMES = make_arms("none", "both")
PUBLISHED = {
    f"{region}, both penalties": decay("both", region) for region in HELD_OUT
}
GIVEN, FOUND = make_hard("x:columns,y:rows"), make_hard("find")
HARD = GIVEN | FOUND

SMOOTHNESS = (
    Number(
        "mean cosine of matrices of neighbouring values, net of the start",
        "neighbor_cosine",
        below(-0.05),
        net=True,
        across=minus,
    ),
    # Is log-volume more even with penalties?
    *(
        Number(
            f"standard deviation of log-volume over {where} points, mean over "
            "stages",
            name,
            above(0),
            over=fmean,
            across=minus,
            decides=False,
        )
        for where, name in (
            ("all", "log_volume_sd"),
            ("OOD", "log_volume_sd_ood"),
        )
    ),
)
ORDER = Number(
    "rank correlation of OOD MSE with none, entropy, variance, both",
    "ood/mse",
    below(0),
    across=collect,
    by=estimate_trend,
)
RATIO = Number(
    "log₁₀ ratio of OOD MSE",
    "ood/mse",
    above(math.log10(STEP)),
    across=log_ratio,
)
WORKS = make_share(
    "OOD position accuracy > 0.95 and relative MSE < 0.1",
    {ACCURACY: above(0.95), ERROR: below(0.1)},
)
GOOD_HARD = {ACCURACY: above(0.99), ERROR: below(0.02)}
WORKS_HARD = make_share(
    "OOD position accuracy > 0.99 and relative MSE < 0.02", GOOD_HARD
)


def is_sign_right(group: Group, when: str) -> Series:
    """Returns 1 for runs whose axes are apart just if they succeed, else 0."""
    apart, good = group.get("axis_ratio", when), find_met(group, GOOD_HARD)
    is_known = apart.notna() & good.notna()
    return ((apart > APART) == (good > 0)).astype(float).where(is_known)


SIGN = Number(
    f"seeds of which ID alone (axes apart by > {APART:g}) says whether they "
    "succeed",
    is_sign_right,
    above(0.999),
    by=estimate_fact,
)


SINGLE = {f"{name} alone": decay(name) for name in ("entropy", "variance")}
# As the paper states it: the order of errors, of all runs whether they are
# fitted or not, and log-volume, which figure 3d shows.
LOWER = replace(RATIO, rule=above(0))
HIGHER_ID = replace(
    LOWER, quantity="log₁₀ ratio of ID MSE", column="id/mse", name="ID"
)

# As the paper states it: the order of errors, of all runs whether they are
# fitted or not, and log-volume, which figure 3d shows.
LOWER = replace(RATIO, rule=above(0))
HIGHER_ID = replace(
    LOWER, quantity="log₁₀ ratio of ID MSE", column="id/mse", name="ID"
)


def compare_penalties(
    pairs: Iterable[tuple[str, str]], number: Number, *gates: Gate
) -> list[Check]:
    """Returns a check of a ratio for each pair of a worse and a better arm."""
    return [
        Check(Versus(f"{first} over {second}", ALL, pair), [number], gates)
        for pair in pairs
        for first, second in [pair]
    ]


STEPS = list(pairwise(PENALTIES))
COSTS = [*((name, "none") for name in [*PENALTIES][1:]), ("variance", "both")]
SINGLE = {f"{name} alone": decay(name) for name in ("entropy", "variance")}
EXTREME = Versus("corner, none less both", EXTREMES, ("none", "both"))
CLAIMS = {
    "C11": Declaration([Check(PUBLISHED, [WORKS])]),
    "C12": Declaration(
        [
            Check(SINGLE, [replace(WORKS, rule=below(0.5))]),
            Check({"both": decay("both")}, [WORKS]),
            Check(Versus("the order", ALL, tuple(PENALTIES)), [ORDER]),
            *compare_penalties(STEPS, RATIO, FITTED),
        ],
        [
            *compare_penalties(STEPS, LOWER),
            *compare_penalties(COSTS, HIGHER_ID),
        ],
    ),
    "C13": Declaration(
        [Check(EXTREME, SMOOTHNESS)],
        [Check(EXTREME, [replace(SMOOTHNESS[1], decides=True)])],
    ),
    "C22": Declaration(
        [Check(GIVEN, [WORKS_HARD]), Check(FOUND, [WORKS_HARD, SIGN])]
    ),
}
