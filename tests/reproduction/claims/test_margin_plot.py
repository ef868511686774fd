"""The picture of all verdicts: every part lies where its verdict says."""

import math
from types import SimpleNamespace

import pytest

from reproduction.claims.claim_pictures import (
    AT_FAULT,
    Row,
    list_rows,
    to_margins,
)
from reproduction.claims.parts import Part
from reproduction.verdicts import Rule, Verdict, above, below
from tfcomp.statistics.estimates import Estimate

NEAR, DIFFERS = Rule(2.5, 3.5), Rule(-0.1, 0.1, outside=True)


def make_part(low: float | None, mean: float, high: float, rule: Rule) -> Part:
    return Part("", "", Estimate(mean, low, high, 5, {}), rule)


def make_rows(
    verdict: Verdict, *parts: Part, reason="a fault", paper=False
) -> list[Row]:
    claim = SimpleNamespace(doubt="a fault")
    result = SimpleNamespace(
        claim=claim, verdict=verdict, parts=parts, reason=reason
    )
    result.own_paper = [*parts]
    return list_rows(result, result.own_paper if paper else parts, parts[1:])


@pytest.mark.parametrize(
    ("number", "rule", "expected"),
    [
        (0.5, above(0.5), 0.0),
        (-0.06, below(-0.02), 2.0),
        (0.25, below(0.5), 0.5),
        (3.0, NEAR, 1.0),
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
            mean = bound + shift
            part = make_part(mean - 0.01, mean, mean + 0.01, rule)
            (row,) = make_rows(part.verdict, part)
            assert (row.low > 0) == (part.verdict == Verdict.REPRODUCED)
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
def test_an_open_interval_lies_on_both_sides(ends, rule, expected) -> None:
    part = make_part(*ends, rule)
    assert part.verdict == Verdict.UNDECIDED
    (row,) = make_rows(part.verdict, part)
    assert (row.low, row.high) == pytest.approx(expected)


def test_a_row_has_the_verdict_of_its_claim() -> None:
    bad, good = (make_part(x, x + 0.1, x + 0.2, above(0.5)) for x in (0.1, 0.8))
    # A test that is not valid is no success.
    (row,) = make_rows(Verdict.NOT_VALID, good)
    assert row.verdict == "test not valid"
    (row,) = make_rows(Verdict.NOT_VALID, good, paper=True)
    assert row.verdict == "reproduced"  # by the paper's own test
    # A measure at fault refutes nothing.
    rows = make_rows(Verdict.UNDECIDED, bad, good)
    assert [row.verdict for row in rows] == [AT_FAULT, "reproduced"]
    assert rows[1].negative == pytest.approx(0.8)  # of the same name
    (row,) = make_rows(Verdict.UNDECIDED, bad, reason="2 parts")
    assert row.verdict == "refuted"
    # Trends have no interval.
    trend = make_part(None, 0.9, 0.95, above(0.5))
    assert make_rows(Verdict.UNDECIDED, trend) == []
