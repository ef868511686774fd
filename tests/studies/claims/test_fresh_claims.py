"""Version 2: fresh seeds, gates of single runs, Holm, and controls."""

import dataclasses

import pytest

from tests.studies.claims.planted import plant_claim
from tfcomp.studies.claims.all_claims import FRESH_CLAIMS
from tfcomp.studies.claims.claim import EACH_FITTED, Measured, Number
from tfcomp.studies.claims.controls import (
    FIRST_SEED,
    Control,
    Kind,
    read_declarations,
)
from tfcomp.studies.claims.estimation import (
    estimate_geometric,
    estimate_share,
    estimate_trend,
)
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments.decoders import make_cnn
from tfcomp.studies.claims.fresh_claim import FreshClaim
from tfcomp.studies.claims.verdict import (
    Verdict,
    above,
    below,
    correct_refutations,
    decide,
)

BY_NAME = {claim.name: claim for claim in FRESH_CLAIMS}
NAMES = list(BY_NAME)
CONTROLS = [
    pytest.param(claim, control, id=f"{claim.name}, {control.name}")
    for claim in FRESH_CLAIMS
    for control in claim.controls
]


def test_all_claims_are_there_with_controls_of_both_kinds() -> None:
    assert NAMES == [f"C{number}" for number in range(1, 23)]
    assert list(read_declarations()) == ["settings", *NAMES]
    for claim in FRESH_CLAIMS:
        assert {c.kind for c in claim.controls} >= {
            Kind.POSITIVE,
            Kind.NEGATIVE,
        }
        assert all((claim.title, claim.statement, claim.rule, claim.method))


@pytest.mark.parametrize(("claim", "control"), CONTROLS)
def test_controls(claim, control) -> None:
    evidence = control.plant()
    result = dataclasses.replace(claim, controls=()).judge(evidence)
    untrained = [c for c in result.controls if c.kind is Kind.UNTRAINED]
    assert all(c.is_right for c in untrained)
    expected = Verdict.REPRODUCED
    if control.kind is not Kind.POSITIVE:
        expected = Verdict.REFUTED
        if claim.name == "C12":  # no trend is no other trend
            expected = Verdict.UNDECIDED
    assert result.verdict is expected, [
        (p.label, p.estimate, p.verdict, p.reason) for p in result.parts
    ]


@pytest.mark.parametrize("shift", [-100, 100])
@pytest.mark.parametrize("name", NAMES)
def test_seeds_of_other_rules_have_no_say(name: str, shift: int) -> None:
    """Those that rules were written on, and those of the next version."""
    (control, *_) = BY_NAME[name].controls
    evidence = control.plant()
    runs = [
        dataclasses.replace(run, flags=run.flags | {"seed": run.seed + shift})
        for run in evidence.runs
    ]
    studies = [
        dataclasses.replace(
            study, thresholds=study.thresholds.assign(seed=FIRST_SEED + shift)
        )
        for study in evidence.studies
    ]
    result = BY_NAME[name].judge(Evidence(tuple(runs), tuple(studies)))
    assert result.verdict is Verdict.NOT_RUN
    if name in ("C1", "C2"):
        old = Evidence(plant_claim(name, "reproduced").runs)
        assert BY_NAME[name].judge(old).verdict is Verdict.NOT_RUN


def make_claim(
    *numbers: Number, controls=(), gates=(EACH_FITTED,)
) -> FreshClaim:
    test = Measured("bump", make_cnn("bump"), numbers, gates)
    return FreshClaim("C0", "", "", "", "", "", [test], controls=controls)


NUMBER = Number("a number", "a", above(0.5))


def plant_numbers(kind: Kind = Kind.POSITIVE, **scores):
    return Control("planted", kind, {"donut": scores})


def test_a_seed_that_is_not_fitted_has_no_say_and_is_counted() -> None:
    fits = {"id/relative_mse": {"seeds": [0.3] * 4 + [0.003] * 6}}
    numbers = {"a": {"seeds": [-9.0] * 4 + [0.9] * 6}}
    result = make_claim(NUMBER).judge(plant_numbers(**fits, **numbers).plant())
    assert result.verdict is Verdict.REPRODUCED
    (part,) = result.parts
    assert part.estimate.count == 6 and "6 of 10 fitted" in part.differences
    fits = {"id/relative_mse": 0.3}
    result = make_claim(NUMBER).judge(plant_numbers(**fits, a=0.9).plant())
    assert result.verdict is Verdict.UNDECIDED
    assert result.parts[0].reason == "not fitted: 0 of 10 fitted"


@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [
        (Kind.POSITIVE, 0.9, Verdict.REPRODUCED),
        (Kind.NEGATIVE, 0.1, Verdict.REPRODUCED),
        (Kind.POSITIVE, 0.1, Verdict.NOT_VALID),
        (Kind.NEGATIVE, 0.9, Verdict.NOT_VALID),
    ],
)
def test_a_control_that_misbehaves(kind, value, verdict) -> None:
    claim = make_claim(NUMBER, controls=[plant_numbers(kind, a=value)])
    result = claim.judge(plant_numbers(a=0.9).plant())
    assert result.verdict is verdict
    if verdict is Verdict.NOT_VALID:
        assert f"{kind}: planted" in result.reason


@pytest.mark.parametrize(
    ("start", "gates", "verdict", "word"),
    [
        (0.8, [], Verdict.NOT_VALID, "passes"),
        (0.8, [EACH_FITTED], Verdict.REPRODUCED, "gate alone"),
        (0.1, [], Verdict.REPRODUCED, "number"),
        (0.1, [EACH_FITTED], Verdict.REPRODUCED, "number"),
    ],
)
def test_untrained_networks_must_not_pass(start, gates, verdict, word) -> None:
    planted = plant_numbers(**{"a": 0.9, "start/a": start})
    result = make_claim(NUMBER, gates=gates).judge(planted.plant())
    assert result.verdict is verdict
    (control,) = result.controls
    assert control.kind is Kind.UNTRAINED and word in control.name
    assert control.is_right is (verdict is Verdict.REPRODUCED)


def test_untrained_networks_must_not_pass_a_part_that_was_run() -> None:
    number = Number("a number", "a", above(0.5))
    bump = Measured("bump", make_cnn("bump"), [number])
    ramp = Measured("ramp", make_cnn("ramp"), [number])
    claim = FreshClaim("C0", "", "", "", "", "", [bump, ramp])
    result = claim.judge(plant_numbers(**{"a": 0.9, "start/a": 0.8}).plant())
    assert result.verdict is Verdict.NOT_VALID


def test_geometric_means() -> None:
    found = estimate_geometric({0: 0.01, 1: 0.1, 2: 1.0})
    assert found.mean == pytest.approx(0.1)
    assert 0 < found.low < 0.01 and found.low * found.high == pytest.approx(
        0.01
    )
    assert found.test(found.low) == pytest.approx(0.05)
    assert estimate_geometric({0: 0.0, 1: 0.1}) is None


def test_shares_and_trends() -> None:
    most = estimate_share(dict.fromkeys(range(5), True))
    assert decide(most, above(0.5))[0] is Verdict.REPRODUCED
    some = estimate_share({s: s < 8 for s in range(10)})
    assert decide(some, above(0.5))[0] is Verdict.UNDECIDED
    rows = {seed: [9.0, 5.0, 5.0 - seed, 1.0 - seed] for seed in range(4)}
    falling = estimate_trend(rows)
    assert decide(falling, below(0))[0] is Verdict.REPRODUCED
    assert decide(falling, above(0))[0] is Verdict.REFUTED
    none = estimate_trend({s: [1.0, 3.0, 2.0] for s in range(3)})
    assert decide(none, above(0))[0] is Verdict.UNDECIDED
    assert estimate_trend({0: [1.0, None, 2.0], 1: [1.0, 2.0, 3.0]}) is None


def test_refutations_are_corrected_within_a_claim() -> None:
    """Of many parts, one that contradicts by a hair is chance."""
    scores = {f"good_{i}": 0.9 for i in range(5)}
    seeds = [0.45 + 0.02 * (-1) ** seed * seed for seed in range(10)]
    scores["bad"] = {"seeds": seeds}
    numbers = [Number(name, name, above(0.5)) for name in scores]
    evidence = plant_numbers(**scores).plant()
    alone = make_claim(numbers[-1])
    (part,) = alone.tests[0](evidence)
    p = part.estimate.test(0.5)
    bound = part.estimate.high + 1e-3  # refuted, but by a hair
    bad = dataclasses.replace(numbers[-1], rule=above(bound))
    (part,) = make_claim(bad).judge(evidence).parts
    assert part.verdict is Verdict.REFUTED and p > 0
    parts = make_claim(*numbers[:-1], bad).judge(evidence).parts
    assert parts[-1].verdict is Verdict.UNDECIDED
    assert "Holm" in parts[-1].reason
    assert correct_refutations([]) == []
