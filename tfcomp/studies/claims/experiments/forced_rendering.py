"""C11 to C13, C22: forced rendering, by penalties and by hard wiring."""

import math
from dataclasses import replace
from itertools import pairwise

from tfcomp.statistics.limits import Limits
from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.claim import (
    Number,
    Test,
    compare,
    make_share,
    measure_each,
)
from tfcomp.studies.claims.claim_pictures import Figures, draw_spread
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.experiments.decoders import make_decoder
from tfcomp.studies.claims.run_numbers import Estimate, Values
from tfcomp.studies.claims.selection import Arms, Setting, is_positive
from tfcomp.studies.claims.verdict import above, below

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
    """Low-rank networks with some of `PENALTIES`, and a region of `HELD_OUT`.

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
    """The same, as published: trained at a rate that falls at the end."""
    setting = make_low_rank(penalties, region)
    return setting.require(epochs=1000, decay="linear", decay_share=0.2)


def make_hard(axes: str) -> dict[str, Setting]:
    """Hard rendering with a flag `axes`, for each region that is held out."""
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
    """Low-rank networks that differ in their penalties alone."""
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
        run_numbers.difference(run_numbers.net("neighbor_cosine")),
        below(-0.05),
    ),
    # Is log-volume more even with penalties?
    *(
        Number(
            f"standard deviation of log-volume over {where} points, mean over "
            "stages",
            run_numbers.difference(run_numbers.average(name)),
            above(0),
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
    run_numbers.list_all("ood/mse"),
    below(0),
    by=run_numbers.estimate_trend,
)
RATIO = Number(
    "log₁₀ ratio of OOD MSE",
    run_numbers.log_ratio("ood/mse"),
    above(math.log10(STEP)),
)
WORKS = make_share(
    "OOD position accuracy > 0.95 and relative MSE < 0.1",
    {ACCURACY: above(0.95), ERROR: below(0.1)},
)
WORKS_HARD = make_share(
    "OOD position accuracy > 0.99 and relative MSE < 0.02",
    {ACCURACY: above(0.99), ERROR: below(0.02)},
)


def is_sign_right(run: Run) -> bool | None:
    """Whether axes are apart just if the run succeeds; None without sign."""
    apart = run.get("axis_ratio")
    is_good = WORKS_HARD.read(run)
    if apart is None or is_good is None:
        return None
    return (apart > APART) == is_good


def estimate_fact(values: Values, limits: Limits) -> Estimate | None:
    """Share of the seeds as a fact about them: no chance, no interval."""
    found = run_numbers.estimate_share(values, limits)
    if found is None:
        return None
    return replace(found, low=found.mean, high=found.mean, test=None)


SIGN = Number(
    f"seeds of which ID alone (axes apart by > {APART:g}) says whether they "
    "succeed",
    is_sign_right,
    above(0.999),
    by=estimate_fact,
)


def draw_spreads(evidence: Evidence) -> Figures:
    """Spread of log-volume per stage, of all settings that are alike."""
    decided = EXTREMES.find(evidence)
    groups = ALL.find(evidence) | decided
    return draw_spread(
        {
            name: group
            for name, group in groups.items()
            if not EXTREMES.find_mismatch(decided["none"], group)
        }
    )


SINGLE = {f"{name} alone": decay(name) for name in ("entropy", "variance")}
TESTS: dict[str, list[Test]] = {
    "C11": [measure_each(PUBLISHED, WORKS)],
    "C12": [
        measure_each(SINGLE, replace(WORKS, rule=below(0.5))),
        measure_each({"both": decay("both")}, WORKS),
        compare("the order", ALL, tuple(PENALTIES), ORDER),
        *(
            compare(f"{worse} over {better}", ALL, (worse, better), RATIO)
            for worse, better in pairwise(PENALTIES)
        ),
    ],
    "C13": [
        compare(
            "corner, none less both", EXTREMES, ("none", "both"), *SMOOTHNESS
        )
    ],
    "C22": [
        measure_each(GIVEN, WORKS_HARD),
        measure_each(FOUND, WORKS_HARD, SIGN),
    ],
}
PICTURES = {"C13": draw_spreads}
