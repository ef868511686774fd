"""C11 to C13: low-rank embeddings in pixel space, and their penalties."""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.claims.claim_pictures import draw_spread
from tfcomp.claims.comparison import Arm
from tfcomp.claims.comparison import find_arms
from tfcomp.claims.comparison import find_mismatch
from tfcomp.claims.estimation import estimate
from tfcomp.claims.estimation import estimate_difference
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.numbers import average_stages
from tfcomp.claims.numbers import difference
from tfcomp.claims.numbers import log_ratio
from tfcomp.claims.numbers import score
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import find_group
from tfcomp.claims.selection import is_positive
from tfcomp.claims.selection import make_reference
from tfcomp.claims.selection import region_is
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

# Penalties by name: entropy, variance.
PENALTIES = {
    "none": (0, 0),
    "entropy": (is_positive, 0),
    "variance": (0, is_positive),
    "both": (is_positive, is_positive),
}
FLAGFILES = {
    "none": "low_rank_none.flags",
    "entropy": "low_rank_entropy.flags",
    "variance": "low_rank_variance.flags",
    "both": "low_rank.flags",
}
# Flags in which two settings may differ.
WEIGHTS = ("entropy_weight", "variance_weight", "penalty_basis")
REGIONS = {"corner": "corner:12", "centre": "square:8-23"}
KINDS = {"corner": "corner", "centre": "square"}
ORDER = (("none", "entropy"), ("entropy", "variance"), ("variance", "both"))


def find_low_rank(
    evidence: Evidence, region: str = "corner", basis: str = "raw"
) -> Group:
    """Low-rank networks with both penalties."""
    arm = make_penalty_arm("both", region, basis)
    return find_group(evidence, arm.reference, arm.must)


def find_penalties(
    evidence: Evidence, names: Sequence[str] = tuple(PENALTIES)
) -> dict[str, Group]:
    """Low-rank networks that differ in their penalties alone, by name."""
    arms = {name: make_penalty_arm(name) for name in names}
    return find_arms(evidence, arms, WEIGHTS)


def make_penalty_arm(
    penalties: str, region: str = "corner", basis: str = "raw"
) -> Arm:
    """Low-rank networks with some penalties."""
    entropy, variance = PENALTIES[penalties]
    reference = make_reference(
        FLAGFILES[penalties],
        f"--region={REGIONS[region]}",
        f"--penalty_basis={basis}",
    )
    must = {
        "dataset": "gaussian_bumps",
        "model": "low_rank",
        "region": region_is(KINDS[region]),
        "num_train": 0,
        "coordinates": "grid",
        "entropy_weight": entropy,
        "variance_weight": variance,
    }
    if variance:  # without it, the basis is that of nothing
        must["penalty_basis"] = basis
    return Arm(reference, must)


def judge_c11(evidence: Evidence) -> list[Part]:
    """Errors and positions with both penalties."""
    parts = []
    for basis in ("raw", "unit"):
        for region in REGIONS:
            group = find_low_rank(evidence, region, basis)
            shared = {"groups": (group,)}
            label = f"{region}, both penalties"
            if basis == "unit":
                label += " on unit vectors"
            pair = [
                make_part(
                    f"{label}, error",
                    "OOD relative MSE (1: blank)",
                    estimate(group, score("ood/relative_mse")),
                    below(0.1),
                    **shared,
                ),
                make_part(
                    f"{label}, position",
                    "OOD position accuracy",
                    estimate(group, score("ood/position_accuracy")),
                    above(0.95),
                    **shared,
                ),
            ]
            parts += pair if basis == "raw" else [beside(p) for p in pair]
    return parts


def judge_c12(evidence: Evidence) -> list[Part]:
    """The order of four settings, by pairs at equal seeds."""
    groups = find_penalties(evidence)
    parts = [_compare(groups, worse, better, "ood") for worse, better in ORDER]
    return parts + [
        beside(_compare(groups, name, "none", "id"))
        for name in PENALTIES
        if name != "none"
    ]


def _compare(
    groups: dict[str, Group], worse: str, better: str, split: str
) -> Part:
    first, second = groups[worse], groups[better]
    return make_part(
        f"{worse} over {better}",
        f"log₁₀ ratio of {split.upper()} MSE",
        estimate_difference(first, second, log_ratio(f"{split}/mse")),
        above(0),
        groups=(first, second),
        problem=find_mismatch(first, second, WEIGHTS),
    )


def judge_c13(evidence: Evidence) -> list[Part]:
    """Spread of log-volume without and with penalties, at equal seeds."""
    without, penalized = find_penalties(evidence, ("none", "both")).values()
    problem = find_mismatch(without, penalized, WEIGHTS)
    return compare_spread(without, penalized, "corner, none less both", problem)


def compare_spread(
    without: Group, having: Group, label: str, problem: str = ""
) -> list[Part]:
    """Is log-volume more even in the second group? At equal seeds.

    All grid points decide; OOD points alone are shown beside them.
    """
    parts = []
    for where, name in (
        ("all", "log_volume_sd"),
        ("OOD", "log_volume_sd_ood"),
    ):
        part = make_part(
            label,
            f"standard deviation of log-volume over {where} points, mean "
            "over stages",
            estimate_difference(
                without, having, difference(average_stages(name))
            ),
            above(0),
            groups=(without, having),
            problem=problem,
        )
        parts.append(part if where == "all" else beside(part))
    return parts


def draw_c13(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Spread of log-volume per stage, of all settings that are alike."""
    decided = find_penalties(evidence, ("none", "both"))
    groups = find_penalties(evidence) | decided
    return draw_spread(
        {
            name: group
            for name, group in groups.items()
            if not find_mismatch(decided["none"], group, WEIGHTS)
        }
    )


CLAIMS = (
    Claim(
        "C11",
        "Forced rendering generalizes",
        "A network that renders every value of a factor as a low-rank matrix "
        "in pixel space, with entropy and variance penalties, composes: in "
        "the centre and in a corner.",
        "figures 3b, 3c, section 4.1",
        "OOD relative MSE < 0.1, and position accuracy > 0.95",
        "The penalty on raw parameters, as published, decides; on the unit "
        "vectors that are in use, beside it.",
        judge_c11,
    ),
    Claim(
        "C12",
        "Both penalties are needed",
        "Without penalties ID is best and OOD worst; the entropy penalty "
        "helps a little, the variance penalty much, both most.",
        "figure 3e",
        "OOD MSE: none > entropy > variance > both, every step",
        "Decimal logarithm of the ratio of MSE at equal seeds (errors differ "
        "by factors of a hundred), corner held out. Beside it, how much "
        "worse ID is than without penalties.",
        judge_c12,
    ),
    Claim(
        "C13",
        "Penalties make the representation smoother",
        "With penalties the representation changes more evenly with x and y.",
        "figure 3d",
        "spread of log-volume smaller with both penalties",
        "Standard deviation of log-volume over the grid, mean over the stages "
        "after the code, without less with penalties, at equal seeds.",
        judge_c13,
        draw_c13,
    ),
)
