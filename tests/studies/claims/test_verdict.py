"""Parts of claims: which have a say, and what leaves them open."""

import dataclasses
import itertools

import pytest

from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.verdicts import Verdict, above
from tfcomp.studies.claims.parts import Part, combine_parts

REPRODUCED, REFUTED, UNDECIDED, NOT_RUN, _ = Verdict
INTERVALS = {REPRODUCED: (1, 2), REFUTED: (-2, -1), UNDECIDED: (-1, 1)}


def make_part(verdict: Verdict, **options: bool) -> Part:
    estimate = None
    if verdict in INTERVALS:
        low, high = INTERVALS[verdict]
        estimate = Estimate((low + high) / 2, low, high, 5, {})
    return Part("a part", "a number", estimate, above(0), **options)


def test_parts_beside_a_claim_have_no_say() -> None:
    for verdicts in itertools.product((*INTERVALS, NOT_RUN), repeat=2):
        parts = list(map(make_part, verdicts))
        extra = [make_part(v, decides=False) for v in (*INTERVALS, NOT_RUN)]
        assert combine_parts(parts + extra) == combine_parts(parts)


@pytest.mark.parametrize("verdict", [*INTERVALS])
def test_a_problem_leaves_any_number_open(verdict: Verdict) -> None:
    part = dataclasses.replace(make_part(verdict), problem="not fitted")
    assert (part.verdict, part.reason) == (UNDECIDED, "not fitted")
    nothing = dataclasses.replace(make_part(NOT_RUN), problem="not fitted")
    assert nothing.verdict is NOT_RUN
