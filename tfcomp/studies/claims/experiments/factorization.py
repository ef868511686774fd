"""C6 to C8: how well x and y are kept apart from stage to stage."""

import functools
from collections.abc import Mapping, Sequence

from tfcomp.statistics.limits import CORRELATION
from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.claim import (
    EACH_FITTED,
    FITTED,
    Gate,
    Measured,
    Number,
    make_trend,
    measure,
)
from tfcomp.studies.claims.claim_pictures import Figures, draw_stages
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import MAIN_CODES, make_cnn
from tfcomp.studies.claims.families import Series
from tfcomp.studies.claims.selection import Group, Setting, has_enough
from tfcomp.studies.claims.verdict import Part, above, below

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
        run_numbers.rank_with_stage(score),
        below(0),
        decides=decides,
        limits=CORRELATION,
    )
    for name, score, decides in (
        ("F (eq. 7)", "factorization", True),
        ("Fc (cosine form)", "cosine_factorization", False),
    )
)
FRESH_DECAY = (
    Number(
        "F at the image less F at stage 0, net of the start",
        run_numbers.net(run_numbers.take_change("factorization")),
        below(-0.02),
        "fall",
    ),
    make_trend("F", "factorization", below(0)),
)
LARGEST_DROP = run_numbers.take_largest_drop("factorization")
DROP = Number(
    "largest drop of F in one stage",
    run_numbers.difference(LARGEST_DROP),
    above(0),
)
FRESH_DROP = Number(
    "largest drop of F in one stage, net of the start",
    run_numbers.difference(run_numbers.net(LARGEST_DROP)),
    above(0.02),
)
PROBES = {"ID, out of fold": "probe_r2_id", "ID to OOD": "probe_r2_ood"}
WEAKENING = tuple(
    Number(
        "rank correlation of the probe's R², rounded to 0.01, with the stage "
        "after the code",
        run_numbers.rank_with_stage(score, R2_DIGITS),
        below(0),
        name,
        limits=CORRELATION,
    )
    for name, score in PROBES.items()
)
FRESH_WEAKENING = [
    Number(
        "R² of a linear probe (whole grid, out of fold), last stage less stage "
        "0, net of the start",
        run_numbers.net(run_numbers.take_change("probe_r2_grid")),
        below(-0.01),
        "whole grid, out of fold",
    ),
    # No untrained network is scored with it.
    Number(
        "R² of a linear probe (ID to OOD), last stage less stage 0",
        run_numbers.take_change("probe_r2_ood"),
        below(-0.01),
        "ID to OOD",
        decides=False,
    ),
]


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
    evidence: Evidence, numbers: Sequence[Number], gate: Gate
) -> list[Part]:
    """C6: all depths of one setting; the others support the claim."""
    parts = []
    for code in MAIN_CODES:
        alike = find_depths(evidence, code) or {4: Group()}
        for depth, group in alike.items():
            label = f"{code}, depth {depth}"
            parts += measure(label, [group], numbers, [gate])
        for depth in set(DEPTHS).difference(alike):
            label = f"{code}, depth {depth}, beside the others"
            group = make_cnn(code).require(depth=depth).find(evidence)
            if group.runs:
                parts += measure(label, [group], numbers, [gate], decides=False)
    return parts


def judge_drop(evidence: Evidence, number: Number, gate: Gate) -> list[Part]:
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
            [number],
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
    groups = decoders.find_donuts(evidence)
    figures = {}
    for label, name in PROBES.items():
        caption = f"Probe, {label}: mean over seeds, with 95 % intervals."
        figures |= draw_stages({"": (groups, name)}, "R²", caption)
    return figures


TESTS = {
    "C6": [functools.partial(judge_decay, numbers=DECAY, gate=FITTED)],
    "C7": [functools.partial(judge_drop, number=DROP, gate=FITTED)],
    "C8": [
        Measured(code, make_cnn(code), WEAKENING, [FITTED])
        for code in MAIN_CODES
    ],
}
FRESH_TESTS = {
    "C6": [
        functools.partial(judge_decay, numbers=FRESH_DECAY, gate=EACH_FITTED)
    ],
    "C7": [functools.partial(judge_drop, number=FRESH_DROP, gate=EACH_FITTED)],
    "C8": decoders.measure_all(
        decoders.DONUTS, *FRESH_WEAKENING, gate=EACH_FITTED
    ),
}
PICTURES = {"C6": draw_decay, "C8": draw_probes}
