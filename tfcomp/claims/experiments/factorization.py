"""C6 to C8: how well x and y are kept apart from stage to stage."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence

from tfcomp.claims.claim import FITTED
from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import Gate
from tfcomp.claims.claim import Measured
from tfcomp.claims.claim import Number
from tfcomp.claims.claim import measure
from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.claim_pictures import draw_stages
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments.decoders import MAIN_CODES
from tfcomp.claims.experiments.decoders import find_donuts
from tfcomp.claims.experiments.decoders import make_cnn
from tfcomp.claims.families import Series
from tfcomp.claims.run_numbers import difference
from tfcomp.claims.run_numbers import rank_with_stage
from tfcomp.claims.run_numbers import take_largest_drop
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import Setting
from tfcomp.claims.selection import has_enough
from tfcomp.claims.verdict import Part
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.statistics.limits import CORRELATION

DEPTHS = (2, 3, 4, 5, 6)
SHALLOW = 2
DEEP = 6
# R² is rounded to so many decimals before it is ranked: a fall that no
# picture of figure 2 could show is none.
R2_DIGITS = 2

# Fc is ours; the claim is about the score of the paper.
DECAY = tuple(
    Number(
        f"rank correlation of {name} with the stage after the code",
        rank_with_stage(score),
        below(0),
        decides=decides,
        limits=CORRELATION,
    )
    for name, score, decides in (
        ("F (eq. 7)", "factorization", True),
        ("Fc (cosine form)", "cosine_factorization", False),
    )
)
DROP = Number(
    "largest drop of F in one stage",
    difference(take_largest_drop("factorization")),
    above(0),
)
PROBES = {"ID, out of fold": "probe_r2_id", "ID to OOD": "probe_r2_ood"}
WEAKENING = tuple(
    Number(
        "rank correlation of the probe's R², rounded to 0.01, with the stage "
        "after the code",
        rank_with_stage(score, R2_DIGITS),
        below(0),
        name,
        limits=CORRELATION,
    )
    for name, score in PROBES.items()
)


def find_depths(evidence: Evidence, code: str) -> dict[int, Group]:
    """CNNs on the donut that differ in depth alone, by depth.

    In the setting of the depth that is nearest to the published one.
    """
    any_depth = make_cnn(code).require(depth=DEPTHS.__contains__)
    base = any_depth.find(evidence)
    if not base.runs:
        return {}
    must = base.runs[0].setting | {"depth": DEPTHS.__contains__}
    alike = Setting(any_depth.flagfile, must)
    return Series(alike, "depth").find(evidence)


def judge_decay(
    evidence: Evidence,
    numbers: Sequence[Number] = DECAY,
    gates: Sequence[Gate] = (FITTED,),
) -> list[Part]:
    """C6: all depths of one setting; the others support the claim."""
    parts = []
    for code in MAIN_CODES:
        alike = find_depths(evidence, code) or {4: Group()}
        for depth, group in alike.items():
            label = f"{code}, depth {depth}"
            parts += measure(label, [group], numbers, gates)
        for depth in set(DEPTHS).difference(alike):
            label = f"{code}, depth {depth}, beside the others"
            group = make_cnn(code).require(depth=depth).find(evidence)
            if group.runs:
                parts += measure(label, [group], numbers, gates, decides=False)
    return parts


def judge_drop(
    evidence: Evidence,
    numbers: Sequence[Number] = (DROP,),
    gate: Gate = FITTED,
) -> list[Part]:
    """C7: largest one-stage drop of F, shallow less deep, at equal seeds."""
    parts = []
    for code in ("ramp", "bump"):
        series = Series(make_cnn(code), "depth", (SHALLOW, DEEP))
        groups = series.find(evidence)
        shallow = groups.pop(SHALLOW, Group())
        depth = choose_deep(groups)
        parts += measure(
            f"{code}, depth {SHALLOW} less depth {depth}",
            [shallow, groups.get(depth, Group())],
            numbers,
            [gate, gate],
            decides=code == "ramp",
        )
    return parts


def choose_deep(groups: Mapping[int, Group]) -> int:
    """Depth 6 if it has enough seeds, else the deepest that has."""
    enough = [depth for depth, g in groups.items() if has_enough(g.runs)]
    return DEEP if DEEP in enough else max(enough or groups, default=DEEP)


def draw_decay(evidence: Evidence) -> Figures:
    """F per stage, a line per depth of one setting."""
    panels = {}
    for code in MAIN_CODES:
        groups = find_depths(evidence, code)
        lines = {f"depth {depth}": group for depth, group in groups.items()}
        panels[f"{code} code"] = lines, "factorization"
    caption = "F per stage, mean over seeds, with 95 % intervals."
    return draw_stages(panels, "F (eq. 7)", caption)


def draw_probes(evidence: Evidence) -> Figures:
    """Probe scores per stage."""
    groups = find_donuts(evidence)
    figures = {}
    for label, name in PROBES.items():
        caption = f"Probe, {label}: mean over seeds, with 95 % intervals."
        figures |= draw_stages({"": (groups, name)}, "R²", caption)
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
        [judge_decay],
        draw_decay,
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
        [judge_drop],
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
        [
            Measured(code, make_cnn(code), WEAKENING, [FITTED])
            for code in MAIN_CODES
        ],
        draw_probes,
    ),
)
