"""Verdicts: known intervals, and properties that hold for any numbers."""

import itertools

import numpy as np
import pytest

from reproduction.verdicts import (
    Rule,
    Verdict,
    above,
    below,
    combine,
    judge,
)
from tfcomp.statistics.estimates import Estimate, estimate_mean

REPRODUCED, REFUTED, UNDECIDED, NOT_RUN, _ = Verdict


def near(value: float, margin: float) -> Rule:
    return Rule(value - margin, value + margin)


def differs(margin: float = 0.0) -> Rule:
    return Rule(-margin, margin, outside=True)


def interval(low: float, high: float, count: int = 5) -> Estimate:
    return Estimate((low + high) / 2, low, high, count, {})


def test_estimates_of_few_seeds() -> None:
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
    assert judge(interval(low, high), rule)[0] is verdict


def test_too_little_to_judge() -> None:
    assert judge(None, above(0)) == (NOT_RUN, "no such run")
    verdict, reason = judge(interval(1, 2, count=2), above(0))
    assert (verdict, reason) == (UNDECIDED, "2 of at least 3 seeds")
    no_interval = Estimate(1.0, None, None, 3, {})
    assert judge(no_interval, above(0))[0] is UNDECIDED


def draw_rules(rng: np.random.Generator) -> list[Rule]:
    bound, width = rng.normal(), abs(rng.normal())
    return [above(bound), below(bound), near(bound, width), differs(width)]


def test_a_narrower_interval_keeps_a_verdict(rng: np.random.Generator) -> None:
    for _ in range(300):
        low, high = np.sort(rng.normal(size=2))
        inner = np.sort(rng.uniform(low, high, size=2))
        for rule in draw_rules(rng):
            before, _ = judge(interval(low, high), rule)
            after, _ = judge(interval(*inner), rule)
            assert before is UNDECIDED or after is before


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
    for order in itertools.permutations(verdicts):
        assert combine(order)[0] is expected
