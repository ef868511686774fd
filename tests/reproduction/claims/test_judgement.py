"""Judgement of claims: seeds, gates, Holm, controls, badges."""

import dataclasses
import itertools

import pytest

from reproduction.claims.cases import make_cnn
from reproduction.claims.claim import FITTED, Check, Number
from reproduction.claims.controls import Control, Kind
from reproduction.claims.evidence import (
    FIRST_SEED,
    FRESH,
    NEXT_SEED,
    UNSEEN,
    UNSEEN_SEED,
)
from reproduction.claims.judgement import Claim
from reproduction.verdicts import Verdict, above
from tests.reproduction.claims.planted import (
    BY_NAME,
    DONUT_SEARCH,
    Planted,
    gather,
    judge_evidence,
    make_study,
    plant_claim,
    set_flags,
)

NAMES = list(BY_NAME)
PLANNED = [n for n in NAMES if BY_NAME[n].fresh and n != "C16"]
CONTROLS = [
    pytest.param(claim, control, id=f"{claim.name}, {control.name}")
    for claim in BY_NAME.values()
    for control in claim.controls
]


@pytest.mark.parametrize(("claim", "control"), CONTROLS)
def test_controls(claim, control) -> None:
    result = judge_evidence(claim.name, control.plant())
    untrained = [c for c in result.controls if c.kind is Kind.UNTRAINED]
    assert all(c.is_right for c in untrained)
    is_positive = control.kind is Kind.POSITIVE
    expected = Verdict.REPRODUCED if is_positive else Verdict.REFUTED
    if control.name == "no order":  # no trend is no other trend
        expected = Verdict.UNDECIDED
    assert result.verdict is expected, result.parts


@pytest.mark.parametrize("name", NAMES)
def test_seeds_of_trials_count_where_there_are_no_others(name: str) -> None:
    good, bad = (plant_claim(name, kind) for kind in ("reproduced", "refuted"))
    trial = judge_evidence(name, bad.move(-FIRST_SEED))
    assert trial.verdict is Verdict.REFUTED
    both = judge_evidence(name, bad.move(-FIRST_SEED) + good)
    assert both.verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
@pytest.mark.parametrize("name", PLANNED)
def test_fresh_seeds_judge_when_all_are_in(name: str, kind: str) -> None:
    plan = BY_NAME[name].fresh
    good, bad = (plant_claim(name, kind) for kind in ("reproduced", "refuted"))
    old, new = (bad, good) if kind == "reproduced" else (good, bad)
    steps = range(NEXT_SEED - FIRST_SEED, NEXT_SEED, 10)
    whole = old
    for n in range(-(-max(plan.values()) // 10)):
        whole += new.move(steps[n])
    result = judge_evidence(name, whole)
    part_of = [p for p in result.parts if p.label.startswith(tuple(plan))]
    assert part_of and all(part.is_fresh for part in part_of)
    expected = judge_evidence(name, new).verdict
    if len({*plan}) == 1 and "" in plan:
        assert result.verdict is expected
    # One seed less, and they have no say.
    for start, planned in plan.items() if kind == "refuted" else ():
        last = NEXT_SEED + planned - 1
        kept = tuple(run for run in whole.runs if run.seed < last)
        waiting = judge_evidence(name, dataclasses.replace(whole, runs=kept))
        assert f"{planned - 1} of {planned} fresh seeds" in waiting.reason
        those = [p for p in waiting.parts if p.label.startswith(start)]
        assert those and not any(part.is_fresh for part in those)


def test_searches_beyond_the_plan_are_not_looked_at() -> None:
    study = make_study("study", *DONUT_SEARCH, seeds=9)
    table = study.thresholds.assign(seed=study.thresholds["seed"] + 100)
    is_late = table["seed"] >= NEXT_SEED + 5
    late = table["num_examples"].mask(is_late, 10 * table["grid_size"])
    table = table.assign(num_examples=late)
    slopes = study.slopes.assign(slope=2.0, low=1.9, high=2.1)  # of all seeds
    more = dataclasses.replace(study, thresholds=table, slopes=slopes)
    result = judge_evidence("C16", Planted(studies=(more,)))
    (bumps,) = (
        p for p in result.parts if p.decides and "CNN: bumps," in p.label
    )
    assert bumps.num_runs == 5 and bumps.round == FRESH
    assert bumps.estimate.mean == pytest.approx(3)


def test_unseen_seeds_of_some_settings_wait_for_the_others() -> None:
    def plant(kind: str, shift: int, *numbers: int) -> Planted:
        runs = plant_claim("C18", kind).move(shift).runs
        more = plant_claim("C18", kind).move(shift + 10).runs
        chosen = [set_flags(runs + more, num_bumps=n) for n in numbers]
        return Planted(tuple(itertools.chain(*chosen)))

    old = plant("reproduced", 100, 0, 10, 50, 100)
    some = old + plant("refuted", 200, 0, 10)
    result = judge_evidence("C18", some)
    assert result.verdict is Verdict.REPRODUCED
    assert result.reason.endswith("0 of 20 unseen seeds are in")
    assert {part.round for part in result.parts} == {FRESH}
    result = judge_evidence("C18", some + plant("refuted", 200, 50, 100))
    assert result.verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", NAMES)
def test_a_new_rule_makes_no_verdict_better_on_old_seeds(name: str) -> None:
    claim = dataclasses.replace(BY_NAME[name], controls=())
    (before,) = (h["verdict"] for h in claim.history if h["version"] == 3)
    result = claim.judge(plant_claim(name, "reproduced").gather())
    is_same = before == "reproduced"
    expected = Verdict.REPRODUCED if is_same else Verdict.UNDECIDED
    assert result.verdict is expected
    assert is_same or "written on" in result.reason
    worse = claim.judge(plant_claim(name, "refuted").gather())
    assert worse.verdict is not Verdict.REPRODUCED


def test_conditions_are_no_parts_of_a_badge() -> None:
    mixed = judge_evidence("C12", plant_claim("C12", "refuted"))
    assert any(part.verdict is Verdict.REPRODUCED for part in mixed.parts)
    assert mixed.badge == "refuted"
    # Nor is the sign for the CNN alone.
    signs = judge_evidence("C10", plant_claim("C10", "refuted"))
    assert signs.parts[0].verdict is Verdict.REPRODUCED
    assert signs.badge == signs.word == "refuted"
    codes = {part.of for part in signs.parts if part.decides}
    assert codes == {"bump", "ramp"}


def make_claim(*numbers: Number, controls=(), gates=(FITTED,)) -> Claim:
    test = Check({"bump": make_cnn("bump")}, numbers, gates)
    return Claim("C0", "", "", "", "", "", [test], controls=controls)


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


@pytest.mark.parametrize("gates", [[], [FITTED]])  # no gate rescues them
@pytest.mark.parametrize(
    ("start", "verdict"), [(0.8, Verdict.NOT_VALID), (0.1, Verdict.REPRODUCED)]
)
def test_untrained_networks_must_not_pass(start, gates, verdict) -> None:
    planted = plant_numbers(**{"a": 0.9, "start/a": start})
    result = make_claim(NUMBER, gates=gates).judge(planted.plant())
    assert result.verdict is verdict
    (control,) = result.controls
    assert control.kind is Kind.UNTRAINED
    assert control.is_right is (verdict is Verdict.REPRODUCED)


def test_refutations_are_corrected_within_a_claim() -> None:
    """One of many parts that contradicts by a hair is chance."""
    scores = {f"good_{i}": 0.9 for i in range(5)}
    seeds = [0.45 + 0.02 * (-1) ** seed * seed for seed in range(10)]
    scores["bad"] = {"seeds": seeds}
    numbers = [Number(name, name, above(0.5)) for name in scores]
    planted = plant_numbers(**scores).plant()
    (part,) = make_claim(numbers[-1]).judge(planted).parts
    bound = part.estimate.high + 1e-3  # refuted, but by a hair
    bad = dataclasses.replace(numbers[-1], rule=above(bound))
    (part,) = make_claim(bad).judge(planted).parts
    assert part.verdict is Verdict.REFUTED
    parts = make_claim(*numbers[:-1], bad).judge(planted).parts
    assert parts[-1].verdict is Verdict.UNDECIDED
    assert "Holm" in parts[-1].reason


FAILURES = [name for name in NAMES if BY_NAME[name].is_failure]


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
@pytest.mark.parametrize("name", FAILURES)
def test_networks_trained_on_everything_must_not_fail(name, kind) -> None:
    claim = dataclasses.replace(BY_NAME[name], history=(), doubt="")
    good = plant_claim(name, "reproduced")
    outcomes = {c.kind: c for c in claim.judge(good.gather()).controls}
    assert outcomes[Kind.TRAINED].verdict is Verdict.NOT_RUN
    on_all = set_flags(plant_claim(name, kind).runs, train_all=True)
    result = claim.judge(gather(good.runs, on_all))
    outcomes = {c.kind: c for c in result.controls}
    assert outcomes[Kind.TRAINED].verdict == kind
    assert Kind.UNTRAINED not in outcomes  # its place is taken
    is_valid = result.verdict is not Verdict.NOT_VALID
    assert is_valid is (kind == "refuted")
    # They are no evidence on the claim itself.
    assert claim.judge(gather(on_all)).parts[0].num_runs == 0


@pytest.mark.parametrize("name", FAILURES)
def test_two_networks_trained_on_everything_are_no_control(name: str) -> None:
    claim = dataclasses.replace(BY_NAME[name], history=(), doubt="")
    good = plant_claim(name, "reproduced")
    on_all = set_flags(good.runs, train_all=True)
    few = [run for run in on_all if run.seed < FIRST_SEED + 2]
    kinds = {c.kind: c.verdict for c in claim.judge(good.gather()).controls}
    result = claim.judge(gather(good.runs, few))
    assert {c.kind: c.verdict for c in result.controls} == kinds
    assert kinds[Kind.TRAINED] is Verdict.NOT_RUN


def center(planted: Planted) -> Planted:
    """The same numbers of a fit with a constant, at unseen seeds."""
    runs = []
    for run in planted.runs:
        old, start = run.measures, run.measures["start"]
        new = {f"{name}_centered": v for name, v in old.items()}
        new["start"] = {f"{name}_centered": v for name, v in start.items()}
        runs.append(run._replace(measures=new | {"version": "planted"}))
    return Planted(tuple(runs)).move(UNSEEN_SEED - FIRST_SEED)


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
def test_fixed_measures_judge_networks_trained_on_everything(kind) -> None:
    claim = dataclasses.replace(BY_NAME["C4"], history=(), doubt="")
    on_all = set_flags(center(plant_claim("C4", kind)).runs, train_all=True)
    good = plant_claim("C4", "reproduced").runs
    result = claim.judge(gather(good, on_all))
    outcomes = {c.kind: c.verdict for c in result.controls}
    assert outcomes[Kind.TRAINED] == kind


def test_fixed_measures_judge_unseen_seeds() -> None:
    claim = dataclasses.replace(BY_NAME["C4"], controls=())
    good, bad = (plant_claim("C4", kind) for kind in ("reproduced", "refuted"))
    for old, new, verdict in (
        (good, center(bad), Verdict.REFUTED),
        (bad, center(good), Verdict.REPRODUCED),
    ):
        result = claim.judge((old + new).gather())
        assert result.verdict is verdict  # no doubt, and no rule was seen
        assert all(p.round == UNSEEN for p in result.parts)
        # One seed less, and the old seeds and the doubt are back.
        few = Planted(tuple(r for r in new.runs if r.seed < 309))
        before = claim.judge((old + few).gather())
        assert before.verdict is Verdict.UNDECIDED
