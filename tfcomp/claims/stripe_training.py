"""C14, C15, C17: training on stripes, every factor by itself."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence

from tfcomp.claims.claim_pictures import draw_spread
from tfcomp.claims.comparison import Arm
from tfcomp.claims.comparison import count_steps
from tfcomp.claims.comparison import find_arms
from tfcomp.claims.comparison import find_mismatch
from tfcomp.claims.comparison import find_unequal_training
from tfcomp.claims.curve_pictures import draw_counts
from tfcomp.claims.decoders import make_bump_arm
from tfcomp.claims.estimation import estimate
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.fitted import find_misfit
from tfcomp.claims.fitted import find_misplacement
from tfcomp.claims.forced_rendering import compare_spread
from tfcomp.claims.numbers import correlate_ranks
from tfcomp.claims.numbers import score
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import find_group
from tfcomp.claims.selection import find_series
from tfcomp.claims.selection import is_positive
from tfcomp.claims.selection import make_reference
from tfcomp.claims.selection import region_is
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import estimate_mean

STRIPES = {
    "dataset": "stripes",
    "model": "cnn",
    "encoding": "bump",
    "region": region_is("corner"),
}
# Flags in which a run on stripes and one on bumps may differ.
TRAINING_SET = ("dataset", "num_bumps", "epochs", "steps_per_epoch")
MANY_BUMPS = 100


def find_stripes(
    evidence: Evidence, num_bumps: object, code: str = "bump"
) -> Group:
    """CNNs trained on stripes and so many bumps, corner held out."""
    flagfile = "stripes.flags"
    if num_bumps != 0:
        flagfile = "stripes_and_bumps.flags"
    count = num_bumps if isinstance(num_bumps, int) else 50
    reference = make_reference(
        flagfile, f"--num_bumps={count}", f"--encoding={code}"
    )
    must = STRIPES | {"encoding": code, "num_bumps": num_bumps}
    return find_group(evidence, reference, must)


def find_few_shot(
    evidence: Evidence, wanted: Collection[int] = ()
) -> dict[int, Group]:
    """CNNs on stripes and different numbers of bumps, otherwise alike."""
    reference = make_reference("stripes_and_bumps.flags")
    return find_series(evidence, reference, STRIPES, "num_bumps", wanted)


def judge_c14(evidence: Evidence) -> list[Part]:
    """Position of the peak from stripes alone."""
    parts = []
    for code in ("bump", "ramp"):
        group = find_stripes(evidence, 0, code)
        shared = {"groups": (group,)}
        numbers = (
            ("OOD position accuracy", "ood/position_accuracy", above(0.95)),
            (
                "OOD MSE against the sum of two stripes, relative to blank",
                "ood_plus/relative_mse",
                below(1),
            ),
        )
        for quantity, name, rule in numbers:
            part = make_part(
                f"stripes only, {code}",
                quantity,
                estimate(group, score(name)),
                rule,
                **shared,
            )
            decides = code == "bump" and name == "ood/position_accuracy"
            parts.append(part if decides else beside(part))
    return parts


def judge_c15(evidence: Evidence) -> list[Part]:
    """OOD error against the number of bumps."""
    series = find_few_shot(evidence, [MANY_BUMPS])
    many = series.get(MANY_BUMPS, Group())
    counts = ", ".join(map(str, series))
    return [
        make_part(
            f"stripes and {counts or 'more and more'} bumps, trend",
            "rank correlation of OOD MSE and number of bumps",
            estimate_trend(series),
            below(0),
            groups=tuple(series.values()),
            problem="" if len(series) > 2 else "fewer than three numbers",
        ),
        make_part(
            f"stripes and {MANY_BUMPS} bumps, error",
            "OOD relative MSE (1: blank)",
            estimate(many, score("ood/relative_mse")),
            below(0.5),
            groups=(many,),
        ),
    ]


def estimate_trend(series: dict[int, Group]) -> Estimate | None:
    """Rank correlation of OOD MSE with the number of bumps, per seed.

    Over the seeds that all numbers of bumps have; at least three numbers.
    """
    if len(series) < 3:
        return None
    shared = set.intersection(*(set(g.seeds) for g in series.values()))
    values = {
        seed: correlate_ranks(
            [group.seeds[seed].get("ood/mse") for group in series.values()],
            list(series),
        )
        for seed in sorted(shared)
    }
    if any(value is None for value in values.values()):
        return None
    return estimate_mean(values)


def draw_c15(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """OOD error against the number of bumps."""
    return draw_counts(find_few_shot(evidence, [MANY_BUMPS]))


def find_uniformity(evidence: Evidence) -> dict[str, Group]:
    """CNNs with the corner held out, without and with stripes (C17).

    Trained for as many steps: volumes spread as training goes on.
    """
    striped = make_reference("stripes_and_bumps.flags")
    arms = {
        "bumps only": make_bump_arm("bump", "corner"),
        "stripes and bumps": Arm(striped, STRIPES | {"num_bumps": is_positive}),
    }
    return find_arms(evidence, arms, TRAINING_SET, count_steps)


def judge_c17(evidence: Evidence) -> list[Part]:
    """Spread of log-volume without and with stripes, at equal seeds."""
    plain, striped = find_uniformity(evidence).values()
    problem = (
        find_misfit(plain)
        or find_misplacement(striped)
        or find_unlike(plain, striped)
    )
    label = "corner, bumps only less stripes and bumps"
    return compare_spread(plain, striped, label, problem)


def find_unlike(first: Group, second: Group) -> str:
    """Why a comparison of training sets would be one of something else."""
    mismatch = find_mismatch(first, second, TRAINING_SET)
    return mismatch or find_unequal_training(first, second)


def draw_c17(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Spread of log-volume per stage, with and without stripes."""
    groups = find_uniformity(evidence)
    alone = find_stripes(evidence, 0)
    if not any(find_unlike(group, alone) for group in groups.values()):
        groups["stripes only"] = alone
    return draw_spread(groups)


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
        judge_c14,
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
        judge_c15,
        draw_c15,
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
        judge_c17,
        draw_c17,
    ),
)
