"""C6 to C10: what becomes of the factors from stage to stage."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence

from tfcomp.claims.composition import find_bump_series
from tfcomp.claims.composition import find_bumps
from tfcomp.claims.composition import find_mlp
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.fitted import find_misfit
from tfcomp.claims.fitted import support
from tfcomp.claims.numbers import average_stages
from tfcomp.claims.numbers import combine_stages
from tfcomp.claims.numbers import correlate_ranks
from tfcomp.claims.numbers import difference
from tfcomp.claims.numbers import drop_code
from tfcomp.claims.numbers import largest_drop
from tfcomp.claims.numbers import rank_with_stage
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.pictures import VOLUME
from tfcomp.claims.pictures import draw_spread
from tfcomp.claims.pictures import draw_stages
from tfcomp.claims.pictures import read_stages
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import estimate
from tfcomp.claims.selection import estimate_difference
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import differs

CODES = ("bump", "ramp")
DEPTHS = (2, 3, 4, 5, 6)
SHALLOW = 2
# Log-volumes that differ by less are the same for our purpose: 10 % of the
# volume.
VOLUME_MARGIN = 0.1

PROBES = {
    "ID, out of fold": "probe_r2_id",
    "ID to OOD": "probe_r2_ood",
}
FACTORIZATIONS = {
    "F (eq. 7)": "factorization",
    "Fc (cosine form)": "cosine_factorization",
}


def find_depths(evidence: Evidence, code: str) -> dict[int, Group]:
    """CNNs on the donut by depth; only depths that were run."""
    groups = {d: find_bumps(evidence, code, depth=d) for d in DEPTHS}
    return {depth: group for depth, group in groups.items() if group.runs}


def judge_c6(evidence: Evidence) -> list[Part]:
    """Factorization against stage, all depths."""
    parts = []
    for code in CODES:
        groups = find_depths(evidence, code)
        for depth, group in (groups or {4: Group()}).items():
            for label, name in FACTORIZATIONS.items():
                part = make_part(
                    f"{code}, depth {depth}",
                    f"rank correlation of {label} with the stage",
                    estimate(group, rank_with_stage(name)),
                    below(0),
                    **support(group),
                )
                # Fc is ours; the claim is about the score of the paper.
                is_theirs = name == "factorization"
                parts.append(part if is_theirs else beside(part))
    return parts


def draw_c6(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """F per stage, a line per depth."""
    panels = {
        f"{code} code": {
            f"depth {depth}": group
            for depth, group in find_depths(evidence, code).items()
        }
        for code in CODES
    }
    read = read_stages("factorization")
    caption = "F per stage, mean over seeds, with 95 % intervals."
    return draw_stages(panels, read, "F (eq. 7)", caption)


def judge_c7(evidence: Evidence) -> list[Part]:
    """Largest one-stage drop of F, shallow less deep, at equal seeds."""
    drop = largest_drop("factorization")
    parts = []
    for code in ("ramp", "bump"):
        groups = find_bump_series(evidence, code, "depth")
        shallow = groups.pop(SHALLOW, Group())
        deepest = max(groups, default=6)
        deep = groups.get(deepest, Group())
        part = make_part(
            f"{code}, depth {SHALLOW} less depth {deepest}",
            "largest drop of F in one stage",
            estimate_difference(shallow, deep, difference(drop)),
            above(0),
            groups=(shallow, deep),
            problem=find_misfit(shallow) or find_misfit(deep),
        )
        parts.append(part if code == "ramp" else beside(part))
    return parts


def judge_c8(evidence: Evidence) -> list[Part]:
    """Both probe scores against stage."""
    return [
        make_part(
            f"{code}, {label}",
            "rank correlation of the probe's R² with the stage",
            estimate(group, rank_with_stage(name)),
            below(0),
            **support(group),
        )
        for code in CODES
        for group in [find_bumps(evidence, code)]
        for label, name in PROBES.items()
    ]


def draw_c8(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Probe scores per stage."""
    figures = {}
    for label, name in PROBES.items():
        figures |= draw_stages(
            {"": {f"{c} code": find_bumps(evidence, c) for c in CODES}},
            read_stages(name),
            "R²",
            f"Probe, {label}: mean over seeds, with 95 % intervals.",
        )
    return figures


read_spread = combine_stages(
    "log_volume_sd_ood", "log_volume_sd_id", lambda ood, known: ood - known
)


def average_spread(run: Run) -> float | None:
    """Spread of log-volume, OOD less ID, mean over stages after the code."""
    values = drop_code(read_spread(run))
    if not values or None in values:
        return None
    return sum(values) / len(values)


def grow_spread(run: Run) -> float | None:
    """Rank correlation of |spread OOD less ID| with the stage."""
    values = drop_code(read_spread(run))
    return correlate_ranks([None if v is None else abs(v) for v in values])


def judge_c9(evidence: Evidence) -> list[Part]:
    """Spread of log-volume, OOD against ID."""
    parts = []
    for code in CODES:
        group = find_bumps(evidence, code)
        parts += [
            make_part(
                f"donut, {code}, OOD less ID",
                "standard deviation of log-volume, OOD less ID, mean over "
                "stages",
                estimate(group, average_spread),
                differs(VOLUME_MARGIN),
                **support(group),
            ),
            make_part(
                f"donut, {code}, growth",
                "rank correlation of its size with the stage",
                estimate(group, grow_spread),
                above(0),
                **support(group),
            ),
        ]
    return parts


def draw_c9(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Spread of log-volume per stage, ID and OOD."""
    groups = {f"{code} code": find_bumps(evidence, code) for code in CODES}
    return draw_spread(groups)


def judge_c10(evidence: Evidence) -> list[Part]:
    """Sign of the difference of mean log-volumes, CNN and MLP."""
    parts = []
    quantity = "mean log-volume, OOD less ID, mean over stages"
    number = average_stages("log_volume_difference")
    for code in CODES:
        cnn, mlp = find_bumps(evidence, code), find_mlp(evidence, code)
        first = make_part(
            f"CNN, {code}",
            quantity,
            estimate(cnn, number),
            differs(),
            **support(cnn),
        )
        second = support(mlp)
        if first.verdict != "reproduced":
            second["problem"] = "the sign for the CNN is not known"
        is_negative = first.estimate is not None and first.estimate.mean < 0
        rule = above(0) if is_negative else below(0)
        parts.append(first)
        parts.append(
            make_part(
                f"MLP, {code}", quantity, estimate(mlp, number), rule, **second
            )
        )
    return parts


def draw_c10(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Difference of mean log-volumes per stage."""
    finders: dict[str, Callable] = {"CNN": find_bumps, "MLP": find_mlp}
    panels = {
        kind: {f"{code} code": find(evidence, code) for code in CODES}
        for kind, find in finders.items()
    }
    return draw_stages(
        panels,
        read_stages("log_volume_difference"),
        f"OOD - ID of {VOLUME}",
        "Mean log-volume over OOD points less that over ID points, mean over "
        "seeds, with 95 % intervals. Below 0: the region is compressed.",
    )


CLAIMS = (
    Claim(
        "C6",
        "Factorization decays from stage to stage",
        "The directions in which x and y move a stage become less orthogonal "
        "with depth.",
        "figures 2a to 2d, 11 to 14",
        "rank correlation of F with the stage < 0",
        "F of equation 7, mean over the grid; Spearman over the stages from "
        "the code to the image, one number a run. Every depth that was run.",
        judge_c6,
        draw_c6,
    ),
    Claim(
        "C7",
        "Shallow ramp networks drop more sharply",
        "With ramp codes and few layers, factorization falls in one sharp "
        "drop.",
        "figure 2, section 3.4",
        "largest one-stage drop of F larger at depth 2 than at depth 6",
        "Paired by seed; the deepest network that was run, if not 6.",
        judge_c7,
    ),
    Claim(
        "C8",
        "Linear probes weaken from stage to stage",
        "x and y can be read out linearly less and less well with depth.",
        "figures 2, 11 to 14",
        "rank correlation of R² with the stage < 0, both probes",
        "Ridge regression to x and y: out of fold over ID points, and fitted "
        "on ID, scored on OOD points.",
        judge_c8,
        draw_c8,
    ),
    Claim(
        "C9",
        "The manifold warps in the held-out region",
        "Volume is distorted in the region, and more so with depth.",
        "figures 2e, 2f, section 3.4",
        "OOD differs from ID by more than 0.1, and grows with the stage",
        "Standard deviation of log-volume (natural logarithm) over OOD points "
        "less that over ID points: its mean over the stages after the code, "
        "and Spearman of its size with the stage.",
        judge_c9,
        draw_c9,
    ),
    Claim(
        "C10",
        "MLPs warp in the opposite sense",
        "Where CNNs compress the region, MLPs expand it, or the reverse.",
        "appendix F.3",
        "signs of mean log-volume OOD - ID differ",
        "Mean over the stages after the code. The CNN must have a sign (its "
        "interval excludes 0), and the MLP the other one.",
        judge_c10,
        draw_c10,
    ),
)
