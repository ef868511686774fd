"""C6 to C8: how well x and y are kept apart from stage to stage."""

from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.claim import (
    FITTED,
    Number,
    make_trend,
    measure,
    measure_each,
)
from tfcomp.studies.claims.claim_pictures import Figures, draw_stages
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import MAIN_CODES, make_cnn
from tfcomp.studies.claims.selection import Group, Series, Setting, has_enough
from tfcomp.studies.claims.verdict import Part, above, below

DEPTHS = (2, 3, 4, 5, 6)
SHALLOW = 2
DEEP = 6
DECAY = (
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
    "largest drop of F in one stage, net of the start",
    run_numbers.difference(run_numbers.net(LARGEST_DROP)),
    above(0.02),
)
PROBES = {"ID, out of fold": "probe_r2_id", "ID to OOD": "probe_r2_ood"}
PROBE = "R² of a linear probe (whole grid, out of fold)"
# The image is pixels, and no representation: it stands beside.
WEAKENING = (
    Number(
        f"{PROBE}, last hidden stage less stage 0, net of the start",
        run_numbers.net(run_numbers.take_change("probe_r2_grid", -1)),
        below(-0.01),
        "fall",
    ),
    Number(
        f"{PROBE}, image less stage 0, net of the start",
        run_numbers.net(run_numbers.take_change("probe_r2_grid")),
        below(-0.01),
        "to the image",
        decides=False,
    ),
    make_trend("R² of hidden stages", "probe_r2_grid", below(0), -1),
    # No untrained network is scored with it.
    Number(
        "R² of a linear probe (ID to OOD), last stage less stage 0",
        run_numbers.take_change("probe_r2_ood"),
        below(-0.01),
        "ID to OOD",
        decides=False,
    ),
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
    return Series(Setting(any_depth.flagfile, must), "depth").find(evidence)


def judge_decay(evidence: Evidence) -> list[Part]:
    """C6: all depths of one setting; the others support the claim."""
    parts = []
    for code in MAIN_CODES:
        alike = find_depths(evidence, code) or {4: Group()}
        for depth, group in alike.items():
            label = f"{code}, depth {depth}"
            parts += measure(label, [group], DECAY, [FITTED])
        for depth in set(DEPTHS).difference(alike):
            label = f"{code}, depth {depth}, beside the others"
            group = make_cnn(code).require(depth=depth).find(evidence)
            if group.runs:
                parts += measure(label, [group], DECAY, [FITTED], decides=False)
    return parts


def judge_drop(evidence: Evidence) -> list[Part]:
    """C7: largest one-stage drop of F, shallow less deep, at equal seeds."""
    parts = []
    for code in ("ramp", "bump"):
        series = Series(make_cnn(code), "depth", (SHALLOW, DEEP))
        groups = series.find(evidence)
        shallow = groups.pop(SHALLOW, Group())
        enough = [depth for depth, g in groups.items() if has_enough(g.runs)]
        # Else the deepest that has enough seeds.
        depth = DEEP
        if DEEP not in enough:
            depth = max(enough or groups, default=DEEP)
        parts += measure(
            f"{code}, depth {SHALLOW} less depth {depth}",
            [shallow, groups.get(depth, Group())],
            [DROP],
            [FITTED],
            decides=code == "ramp",
        )
    return parts


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
    "C6": [judge_decay],
    "C7": [judge_drop],
    "C8": [measure_each(decoders.DONUTS, *WEAKENING)],
}
PICTURES = {"C6": draw_decay, "C8": draw_probes}
