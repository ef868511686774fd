"""C6 to C8: how well x and y are kept apart from stage to stage."""

from collections.abc import Iterator
from dataclasses import replace

from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims.claim import (
    Case,
    Check,
    Declaration,
    Number,
    change,
    change_hidden,
    find_largest_fall,
    list_hidden,
    make_trend,
    minus,
)
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import MAIN_CODES, make_cnn
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Series, Setting, has_enough

DEPTHS = (2, 3, 4, 5, 6)
SHALLOW = 2
DEEP = 6
DECAY = (
    Number(
        "F at the image less F at stage 0, net of the start",
        "factorization",
        below(-0.02),
        "fall",
        over=change,
        net=True,
    ),
    make_trend("F", "factorization", below(0)),
)
DROP = Number(
    "largest drop of F in one stage, net of the start",
    "factorization",
    above(0.02),
    over=find_largest_fall,
    from_code=True,
    net=True,
    across=minus,
)
PROBE = "R² of a linear probe (whole grid, out of fold)"
# The image is pixels, and no representation: it stands beside.
WEAKENING = (
    Number(
        f"{PROBE}, last hidden stage less stage 0, net of the start",
        "probe_r2_grid",
        below(-0.01),
        "fall",
        over=change_hidden,
        net=True,
    ),
    Number(
        f"{PROBE}, image less stage 0, net of the start",
        "probe_r2_grid",
        below(-0.01),
        "to the image",
        over=change,
        net=True,
        decides=False,
    ),
    make_trend("R² of hidden stages", "probe_r2_grid", below(0), list_hidden),
    # No untrained network is scored with it.
    Number(
        "R² of a linear probe (ID to OOD), last stage less stage 0",
        "probe_r2_ood",
        below(-0.01),
        "ID to OOD",
        over=change,
        decides=False,
    ),
)


def find_depths(evidence: Evidence, code: str) -> dict[int, Group]:
    """Returns CNNs on the donut that differ in depth alone, by depth.

    In the setting of the depth that is nearest to the published one.
    """
    any_depth = make_cnn(code).require(depth=DEPTHS.__contains__)
    base = any_depth.find(evidence.groups)
    if not len(base):
        return {}
    must = base.flags | {"depth": DEPTHS.__contains__}
    return Series(Setting(any_depth.flagfile, must), "depth").find(
        evidence.groups
    )


def list_depths(evidence: Evidence) -> Iterator[Case]:
    """Yields all depths of one setting, then others, which do not decide."""
    for code in MAIN_CODES:
        alike = find_depths(evidence, code) or {4: Group()}
        for depth, group in alike.items():
            yield Case(f"{code}, depth {depth}", [group])
        for depth in set(DEPTHS).difference(alike):
            label = f"{code}, depth {depth}, beside the others"
            group = make_cnn(code).require(depth=depth).find(evidence.groups)
            if len(group):
                yield Case(label, [group], decides=False)


def list_shallow_and_deep(evidence: Evidence) -> Iterator[Case]:
    """Yields a shallow network and a deep one, of either code."""
    for code in ("ramp", "bump"):
        series = Series(make_cnn(code), "depth", (SHALLOW, DEEP))
        groups = series.find(evidence.groups)
        shallow = groups.pop(SHALLOW, Group())
        enough = [depth for depth, g in groups.items() if has_enough(g)]
        # Else the deepest that has enough seeds.
        depth = DEEP
        if DEEP not in enough:
            depth = max(enough or groups, default=DEEP)
        label = f"{code}, depth {SHALLOW} less depth {depth}"
        pair = [shallow, groups.get(depth, Group())]
        yield Case(label, pair, decides=code == "ramp")


# As the paper states it: trained networks, whatever untrained ones do, and
# probes that are fitted to trained combinations.
FALL = replace(
    DECAY[0],
    quantity="F at the image less F at stage 0",
    rule=below(0),
    net=False,
)
SHARP = replace(
    DROP, quantity="largest drop of F in one stage", rule=above(0), net=False
)
WEAKER = replace(
    WEAKENING[3],
    quantity="R² of a linear probe (ID to OOD), last hidden stage less stage 0",
    rule=below(0),
    over=change_hidden,
    decides=True,
)

CLAIMS = {
    "C6": Declaration(
        [Check(list_depths, DECAY)], [Check(decoders.DONUTS, [FALL])]
    ),
    "C7": Declaration(
        [Check(list_shallow_and_deep, [DROP])],
        [Check(list_shallow_and_deep, [SHARP])],
    ),
    "C8": Declaration(
        [Check(decoders.DONUTS, WEAKENING)], [Check(decoders.DONUTS, [WEAKER])]
    ),
}
