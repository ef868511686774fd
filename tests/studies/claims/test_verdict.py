"""Verdicts: known intervals, and properties that hold for any numbers."""

import dataclasses
import itertools

import numpy as np
import pytest

from tfcomp.studies.claims.run_numbers import Estimate, estimate_mean
from tfcomp.studies.claims.verdict import (
    Part,
    Rule,
    Verdict,
    above,
    below,
    combine,
    decide,
    differs,
    near,
)

REPRODUCED, REFUTED, UNDECIDED, NOT_RUN, _ = Verdict
ORDER = {REFUTED: 0, UNDECIDED: 1, REPRODUCED: 2}


def interval(low: float, high: float, count: int = 5) -> Estimate:
    return Estimate((low + high) / 2, low, high, count, {})


def test_estimate_against_a_textbook() -> None:
    found = estimate_mean({0: 1.0, 1: 2.0, 2: 6.0})
    # Student's quantile for 2 degrees of freedom is 4.3027.
    half_width = 4.3027 * np.sqrt(7.0 / 3.0)
    assert found.mean == 3 and found.count == 3
    assert found.low == pytest.approx(3 - half_width, rel=1e-4)
    assert found.high == pytest.approx(3 + half_width, rel=1e-4)
    single = estimate_mean({4: 2.5})
    assert (single.mean, single.low, single.high) == (2.5, None, None)
    assert estimate_mean({}) is None


@pytest.mark.parametrize(
    ("rule", "low", "high", "verdict"),
    [
        (above(0.5), 0.6, 0.9, REPRODUCED),
        (above(0.5), 0.1, 0.4, REFUTED),
        (above(0.5), 0.4, 0.6, UNDECIDED),
        (above(0.5), 0.5, 0.5, REFUTED),  # not greater
        (below(0.05), 0.01, 0.04, REPRODUCED),
        (below(0.05), 0.06, 0.9, REFUTED),
        (below(0.05), -0.2, 0.06, UNDECIDED),
        (near(3, 0.5), 2.6, 3.4, REPRODUCED),
        (near(3, 0.5), 0.8, 1.2, REFUTED),
        (near(3, 0.5), 2.4, 3.4, UNDECIDED),
        (near(3, 0.5), 1.0, 5.0, UNDECIDED),
        (differs(0.1), -0.4, -0.2, REPRODUCED),
        (differs(0.1), 0.2, 0.4, REPRODUCED),
        (differs(0.1), -0.05, 0.1, REFUTED),
        (differs(0.1), -0.2, 0.2, UNDECIDED),
        (differs(), -0.2, 0.2, UNDECIDED),
        (differs(), 0.0, 0.0, REFUTED),
    ],
)
def test_known_intervals(rule, low, high, verdict) -> None:
    assert decide(interval(low, high), rule)[0] is verdict


def test_too_little_to_decide() -> None:
    assert decide(None, above(0)) == (NOT_RUN, "no such run")
    verdict, reason = decide(interval(1, 2, count=2), above(0))
    assert (verdict, reason) == (UNDECIDED, "2 of at least 3 seeds")
    no_interval = Estimate(1.0, None, None, 3, {})
    assert decide(no_interval, above(0))[0] is UNDECIDED


def test_rules_as_text() -> None:
    rules = (above(0.5), below(0.05), near(3, 0.5), differs(0.1), differs())
    assert [str(rule) for rule in rules] == [
        "> 0.5",
        "< 0.05",
        "2.5 to 3.5",
        "outside -0.1 to 0.1",
        "not 0",
    ]


def draw_rules(rng: np.random.Generator) -> list[Rule]:
    bound, width = rng.normal(), abs(rng.normal())
    return [above(bound), below(bound), near(bound, width), differs(width)]


def test_never_both_met_and_violated(rng: np.random.Generator) -> None:
    for _ in range(300):
        low, high = np.sort(rng.normal(size=2))
        for rule in draw_rules(rng):
            assert not (rule.is_met(low, high) and rule.is_violated(low, high))
            # A number is on one side.
            assert rule.is_met(low, low) != rule.is_violated(low, low)


def test_moving_deeper_never_makes_it_worse(rng: np.random.Generator) -> None:
    for _ in range(300):
        low, high = np.sort(rng.normal(size=2))
        bound, shift = rng.normal(), abs(rng.normal())
        for rule, sign in ((above(bound), 1), (below(bound), -1)):
            before, _ = decide(interval(low, high), rule)
            moved = interval(low + sign * shift, high + sign * shift)
            assert ORDER[decide(moved, rule)[0]] >= ORDER[before]


def test_a_narrower_interval_keeps_a_verdict(rng: np.random.Generator) -> None:
    for _ in range(300):
        low, high = np.sort(rng.normal(size=2))
        inner = np.sort(rng.uniform(low, high, size=2))
        for rule in draw_rules(rng):
            before, _ = decide(interval(low, high), rule)
            after, _ = decide(interval(*inner), rule)
            assert before is UNDECIDED or after is before


def test_scaling_numbers_and_rule_keeps_the_verdict(
    rng: np.random.Generator,
) -> None:
    for _ in range(100):
        values, bound = rng.normal(size=4), rng.normal()
        seeds = dict(enumerate(values))
        before = decide(estimate_mean(seeds), above(bound))[0]
        scaled = estimate_mean({s: 3 * v + 1 for s, v in seeds.items()})
        assert decide(scaled, above(3 * bound + 1))[0] is before
        mirrored = estimate_mean({s: -v for s, v in seeds.items()})
        assert decide(mirrored, below(-bound))[0] is before


def make_parts(*verdicts: Verdict, **options: bool) -> list[Part]:
    numbers = {
        REPRODUCED: interval(1, 2),
        REFUTED: interval(-2, -1),
        UNDECIDED: interval(-1, 1),
        NOT_RUN: None,
    }
    return [
        Part("a part", "a number", numbers[v], above(0), **options)
        for v in verdicts
    ]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((REPRODUCED, REPRODUCED), REPRODUCED),
        ((REPRODUCED, REFUTED), REFUTED),
        ((UNDECIDED, REFUTED, NOT_RUN), REFUTED),
        ((REPRODUCED, UNDECIDED), UNDECIDED),
        ((REPRODUCED, NOT_RUN), UNDECIDED),
        ((NOT_RUN, NOT_RUN), NOT_RUN),
        ((), NOT_RUN),
    ],
)
def test_a_claim_says_all_of_its_parts(verdicts, expected) -> None:
    for order in itertools.permutations(make_parts(*verdicts)):
        assert combine(order)[0] is expected


def test_parts_beside_a_claim_have_no_say() -> None:
    for verdicts in itertools.product((*ORDER, NOT_RUN), repeat=2):
        parts = make_parts(*verdicts)
        extra = make_parts(*ORDER, NOT_RUN, decides=False)
        assert combine(parts + extra) == combine(parts)


def test_better_parts_never_make_a_claim_worse() -> None:
    for first, other in itertools.product(ORDER, repeat=2):
        before = combine(make_parts(first, other))[0]
        for better in ORDER:
            if ORDER[better] >= ORDER[first]:
                after = combine(make_parts(better, other))[0]
                assert ORDER[after] >= ORDER[before]


@pytest.mark.parametrize("verdict", [REPRODUCED, REFUTED, UNDECIDED])
def test_a_problem_leaves_any_number_open(verdict: Verdict) -> None:
    (part,) = make_parts(verdict)
    again = dataclasses.replace(part, problem="not fitted")
    assert (again.verdict, again.reason) == (UNDECIDED, "not fitted")
    nothing = Part("a", "b", None, above(0), problem="not fitted")
    assert nothing.verdict is NOT_RUN
