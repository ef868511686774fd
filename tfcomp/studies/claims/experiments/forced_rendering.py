"""C11 to C13, C22: forced rendering, by penalties and by hard wiring."""

import math
from collections.abc import Mapping
from dataclasses import replace

from tfcomp.statistics.limits import Limits
from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.claim import (
    FITTED,
    Compared,
    Measured,
    Number,
    make_share,
    measure,
)
from tfcomp.studies.claims.claim_pictures import Figures, draw_spread
from tfcomp.studies.claims.estimation import (
    Estimate,
    estimate_share,
    estimate_trend,
)
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.experiments.decoders import make_decoder
from tfcomp.studies.claims.experiments.volumes import UNEVENNESS
from tfcomp.studies.claims.families import Arms
from tfcomp.studies.claims.selection import Setting, is_positive
from tfcomp.studies.claims.verdict import Part, above, below

# Penalties: the flagfile, and the weights of entropy and variance.
PENALTIES = {
    "none": ("low_rank_none.flags", 0, 0),
    "entropy": ("low_rank_entropy.flags", is_positive, 0),
    "variance": ("low_rank_variance.flags", 0, is_positive),
    "both": ("low_rank.flags", is_positive, is_positive),
}
STEPS = [("none", "entropy"), ("entropy", "variance"), ("variance", "both")]
HELD_OUT = {"corner": "corner:12", "centre": "square:8-23"}
DECAYING = {"epochs": 1000, "decay": "linear", "decay_share": 0.2}
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


def make_hard(region: str, axes: str) -> Setting:
    """Hard rendering, with the axes of the factors given or found."""
    return make_decoder(
        "hard_rendering.flags",
        HELD_OUT[region],
        f"--axes={axes}",
        model="hard_rendering",
        axes=axes,
    )


def make_arms(*names: str) -> Arms:
    """Low-rank networks that differ in their penalties alone."""
    free = ("entropy_weight", "variance_weight", "penalty_basis")
    return Arms({name: make_low_rank(name) for name in names}, free)


ALL = make_arms(*PENALTIES)
EXTREMES = make_arms("none", "both")
PUBLISHED = {
    f"{region}, both penalties": make_low_rank("both", region).require(
        **DECAYING
    )
    for region in HELD_OUT
}
HARD = {
    f"{region}, axes {words}": make_hard(region, axes)
    for words, axes in (("given", "x:columns,y:rows"), ("found", "find"))
    for region in HELD_OUT
}

SMOOTHNESS = (
    Number(
        "mean cosine of matrices of neighbouring values, net of the start",
        run_numbers.difference(
            run_numbers.net(lambda run: run.get("neighbor_cosine"))
        ),
        below(-0.05),
    ),
    *(replace(number, decides=False) for number in UNEVENNESS),
)
ORDER = Number(
    "rank correlation of OOD MSE with none, entropy, variance, both",
    lambda *runs: [run.get("ood/mse") for run in runs],
    below(0),
    by=estimate_trend,
)


WORKS = make_share(
    "OOD position accuracy > 0.95 and relative MSE < 0.1",
    {ACCURACY: above(0.95), ERROR: below(0.1)},
)
ALONE = replace(WORKS, rule=below(0.5))
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


def estimate_fact(
    values: Mapping[int, bool | None], limits: Limits
) -> Estimate | None:
    """Share of the seeds as a fact about them: no chance, no interval."""
    found = estimate_share(values, limits)
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


def compare_step(worse: str, better: str) -> Compared:
    """One step of the order: how much larger the error is."""
    number = Number(
        "log₁₀ ratio of OOD MSE",
        run_numbers.log_ratio("ood/mse"),
        above(math.log10(STEP)),
    )
    gates = [FITTED, FITTED]
    return Compared(
        f"{worse} over {better}", ALL, (worse, better), [number], gates
    )


def judge_order(evidence: Evidence) -> list[Part]:
    """C12: the order of four settings, seed by seed."""
    groups = list(ALL.find(evidence).values())
    problems = [ALL.find_mismatch(groups[0], group) for group in groups[1:]]
    problem = next(filter(None, problems), "")
    gates = [FITTED] * len(groups)
    return measure("the order", groups, [ORDER], gates, problem)


def compare_extremes(*numbers: Number, gates: tuple = ()) -> Compared:
    """Numbers without penalties less those with both."""
    pair = "none", "both"
    return Compared("corner, none less both", EXTREMES, pair, numbers, gates)


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


NEEDED = {
    "entropy alone": (make_low_rank("entropy"), ALONE),
    "variance alone": (make_low_rank("variance"), ALONE),
    "both": (make_low_rank("both"), WORKS),
}
TESTS = {
    "C11": [
        Measured(label, setting, [WORKS], [FITTED])
        for label, setting in PUBLISHED.items()
    ],
    "C12": [
        *(
            Measured(label, setting.require(**DECAYING), [number], [FITTED])
            for label, (setting, number) in NEEDED.items()
        ),
        judge_order,
        *(compare_step(*step) for step in STEPS),
    ],
    "C13": [compare_extremes(*SMOOTHNESS, gates=(FITTED, FITTED))],
    "C22": [
        Measured(
            label,
            setting,
            [WORKS_HARD, SIGN] if "found" in label else [WORKS_HARD],
            [FITTED],
        )
        for label, setting in HARD.items()
    ],
}
PICTURES = {"C13": draw_spreads}
