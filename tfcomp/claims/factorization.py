"""C6 to C8: how well x and y are kept apart from stage to stage."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.claim_pictures import read_stages
from tfcomp.claims.decoders import CODES as FLAGFILES
from tfcomp.claims.decoders import find_bump_series
from tfcomp.claims.decoders import find_bumps
from tfcomp.claims.estimation import estimate
from tfcomp.claims.estimation import estimate_difference
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.fitted import find_misfit
from tfcomp.claims.fitted import support
from tfcomp.claims.numbers import difference
from tfcomp.claims.numbers import largest_drop
from tfcomp.claims.numbers import rank_with_stage
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import find_series
from tfcomp.claims.selection import has_enough
from tfcomp.claims.selection import make_reference
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

CODES = ("bump", "ramp")
DEPTHS = (2, 3, 4, 5, 6)
SHALLOW = 2
DEEP = 6
# R² is rounded to so many decimals before it is ranked: a fall that no
# picture of figure 2 could show is none.
R2_DIGITS = 2

PROBES = {
    "ID, out of fold": "probe_r2_id",
    "ID to OOD": "probe_r2_ood",
}
FACTORIZATIONS = {
    "F (eq. 7)": "factorization",
    "Fc (cosine form)": "cosine_factorization",
}


def find_depths(evidence: Evidence, code: str) -> dict[int, Group]:
    """CNNs on the donut that differ in depth alone, by depth.

    In the setting of the depth that is nearest to the published one.
    """
    base = find_bumps(evidence, code, depth=is_depth)
    if not base.runs:
        return {}
    must = base.runs[0].setting | {"depth": is_depth}
    return find_series(evidence, make_reference(FLAGFILES[code]), must, "depth")


def find_other_depths(
    evidence: Evidence, code: str, known: Collection[int]
) -> dict[int, Group]:
    """Depths that were run in another setting alone, by depth."""
    missing = [depth for depth in DEPTHS if depth not in known]
    groups = {d: find_bumps(evidence, code, depth=d) for d in missing}
    return {depth: group for depth, group in groups.items() if group.runs}


def is_depth(depth: int) -> bool:
    """Accepts the depths of the paper."""
    return depth in DEPTHS


def judge_c6(evidence: Evidence) -> list[Part]:
    """Factorization against stage, all depths."""
    parts = []
    for code in CODES:
        alike = find_depths(evidence, code) or {4: Group()}
        for depth, group in alike.items():
            parts += judge_decay(f"{code}, depth {depth}", group)
        for depth, group in find_other_depths(evidence, code, alike).items():
            label = f"{code}, depth {depth}, beside the others"
            parts += map(beside, judge_decay(label, group))
    return parts


def judge_decay(label: str, group: Group) -> list[Part]:
    """Both scores of factorization against the stage after the code."""
    parts = [
        make_part(
            label,
            f"rank correlation of {name} with the stage after the code",
            estimate(group, rank_with_stage(score)),
            below(0),
            **support(group),
        )
        for name, score in FACTORIZATIONS.items()
    ]
    # Fc is ours; the claim is about the score of the paper.
    return [parts[0], beside(parts[1])]


def draw_c6(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """F per stage, a line per depth of one setting."""
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
        wanted = (SHALLOW, DEEP)
        groups = find_bump_series(evidence, code, "depth", wanted)
        shallow, depth = groups.pop(SHALLOW, Group()), choose_deep(groups)
        deep = groups.get(depth, Group())
        part = make_part(
            f"{code}, depth {SHALLOW} less depth {depth}",
            "largest drop of F in one stage",
            estimate_difference(shallow, deep, difference(drop)),
            above(0),
            groups=(shallow, deep),
            problem=find_misfit(shallow) or find_misfit(deep),
        )
        parts.append(part if code == "ramp" else beside(part))
    return parts


def choose_deep(groups: Mapping[int, Group]) -> int:
    """Depth 6 if it has enough seeds, else the deepest that has."""
    enough = [depth for depth, g in groups.items() if has_enough(g.runs)]
    return DEEP if DEEP in enough else max(enough or groups, default=DEEP)


def judge_c8(evidence: Evidence) -> list[Part]:
    """Both probe scores against stage."""
    return [
        make_part(
            f"{code}, {label}",
            "rank correlation of the probe's R², rounded to 0.01, with the "
            "stage after the code",
            estimate(group, rank_with_stage(name, R2_DIGITS)),
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


CLAIMS = (
    Claim(
        "C6",
        "Factorization decays from stage to stage",
        "The directions in which x and y move a stage become less orthogonal "
        "with depth.",
        "figures 2a to 2d, 11 to 14",
        "rank correlation of F with the stage after the code < 0",
        "F of equation 7, mean over the grid; Spearman over the stages after "
        "the code, where F is 1 by construction, up to the image; one number "
        "a run. Every depth that was run in one setting, other settings "
        "beside it.",
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
        "Paired by seed; without enough runs of depth 6, the deepest network "
        "that has them.",
        judge_c7,
    ),
    Claim(
        "C8",
        "Linear probes weaken from stage to stage",
        "x and y can be read out linearly less and less well with depth.",
        "figures 2, 11 to 14",
        "rank correlation of R² with the stage after the code < 0, both probes",
        "Ridge regression to x and y: out of fold over ID points, and fitted "
        "on ID, scored on OOD points. R² is rounded to 0.01 before it is "
        "ranked: smaller falls count as none.",
        judge_c8,
        draw_c8,
    ),
)
