"""The picture of all verdicts: every part lies where its verdict says."""

import math
from types import SimpleNamespace

import pytest

from tfcomp.statistics.verdicts import Rule, Verdict, above, below, judge
from tfcomp.studies.claims.claim_pictures import AT_FAULT, list_rows, to_margins

NEAR, DIFFERS = Rule(2.5, 3.5), Rule(-0.1, 0.1, outside=True)


def make_result(verdict: Verdict, *parts: SimpleNamespace) -> SimpleNamespace:
    claim = SimpleNamespace(name="C0", doubt="a fault")
    return SimpleNamespace(
        claim=claim, verdict=verdict, parts=parts, reason="a fault"
    )


def make_part(low: float, mean: float, high: float, rule: Rule, **more):
    estimate = SimpleNamespace(
        low=low, mean=mean, high=high, count=5, unit="seeds", trend=None
    )
    verdict, _ = judge(estimate, rule)
    values = {"decides": True, "estimate": estimate} | more
    return SimpleNamespace(
        label="", quantity="", verdict=verdict, rule=rule, **values
    )


@pytest.mark.parametrize(
    ("number", "rule", "expected"),
    [
        (0.5, above(0.5), 0.0),
        (1.0, above(0.5), 1.0),
        (0.0, above(0.5), -1.0),
        (-0.06, below(-0.02), 2.0),
        (0.0, below(-0.02), -1.0),
        (0.25, below(0.5), 0.5),
        (3.0, NEAR, 1.0),
        (2.5, NEAR, 0.0),
        (1.0, NEAR, -3.0),
        (0.0, DIFFERS, -1.0),
        (-0.3, DIFFERS, 2.0),
        (0.1, above(0.0), 0.1),
    ],
)
def test_distances(number: float, rule: Rule, expected: float) -> None:
    assert to_margins(number, rule) == pytest.approx(expected)


@pytest.mark.parametrize("rule", [above(0.5), below(-0.02), NEAR])
def test_a_row_lies_where_its_verdict_says(rule: Rule) -> None:
    bounds = [b for b in (rule.low, rule.high) if math.isfinite(b)]
    for bound in bounds:
        for shift in (-0.4, -0.005, 0.0, 0.005, 0.4):
            ends = (bound + shift - 0.01, bound + shift, bound + shift + 0.01)
            part = make_part(*ends, rule)
            (row,) = list_rows(make_result(part.verdict, part), [part])
            is_met = part.verdict == Verdict.REPRODUCED
            assert (row.low > 0) == is_met
            if part.verdict == Verdict.REFUTED:
                assert row.high <= 1e-12 or len(bounds) == 2


@pytest.mark.parametrize(
    ("ends", "rule", "expected"),
    [
        # Both ends are what the claim says, and what lies between is not.
        ((-1.16, -0.36, 0.44), DIFFERS, (-1.0, 10.6)),
        # Neither end is, and what lies between is.
        ((2.0, 2.8, 4.0), NEAR, (-1.0, 1.0)),
    ],
)
def test_an_open_interval_lies_on_both_sides(
    ends: tuple[float, float, float],
    rule: Rule,
    expected: tuple[float, float],
) -> None:
    part = make_part(*ends, rule)
    assert part.verdict == Verdict.UNDECIDED
    (row,) = list_rows(make_result(part.verdict, part), [part])
    assert (row.low, row.high) == pytest.approx(expected)


def test_a_test_that_is_not_valid_is_no_success() -> None:
    part = make_part(0.8, 0.9, 0.95, above(0.5))
    assert part.verdict == Verdict.REPRODUCED
    (row,) = list_rows(make_result(Verdict.NOT_VALID, part), [part])
    assert row.verdict == "test not valid"


def test_parts_without_a_say_or_an_interval_are_left_out() -> None:
    beside = make_part(0.8, 0.9, 0.95, above(0.5), decides=False)
    trend = make_part(0.8, 0.9, 0.95, above(0.5))
    trend.estimate.low = None
    missing = make_part(0.8, 0.9, 0.95, above(0.5), estimate=None)
    parts = beside, trend, missing
    assert list_rows(make_result(Verdict.UNDECIDED, *parts), parts) == []


def test_a_measure_at_fault_is_not_shown_as_a_refutation() -> None:
    bad, good = (make_part(x, x + 0.1, x + 0.2, above(0.5)) for x in (0.1, 0.8))
    result = make_result(Verdict.UNDECIDED, bad, good)
    rows = list_rows(result, result.parts, [good])
    assert [row.verdict for row in rows] == [AT_FAULT, "reproduced"]
    assert rows[1].negative == pytest.approx(0.8)  # of the same name
    result.reason = "2 parts"
    assert list_rows(result, [bad])[0].verdict == "refuted"
