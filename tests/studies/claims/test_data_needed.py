"""C16: one study decides, of enough sizes and seeds, and says so."""

import pytest

from tests.studies.claims.planted import (
    DONUT_SEARCH,
    judge_evidence,
    make_study,
)
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.own_checks import choose_study


def judge(*studies):
    """The small CNN's studies, beside one of the donut's."""
    donut = make_study("donut", *DONUT_SEARCH)
    return judge_evidence("C16", Evidence(studies=(*studies, donut)))


def test_a_quick_study_does_not_decide_beside_a_good_one() -> None:
    good = make_study("good")
    quick = make_study("quick", "--target=0.5,0.9", shift=-2.0, sizes=(16, 24))
    for studies in ((good, quick), (quick, good)):
        result = judge(*studies)
        assert result.verdict is Verdict.REPRODUCED
        assert len(result.parts) == 4
        assert "not used: quick" in result.parts[0].note


def test_order_of_preference() -> None:
    few_seeds = make_study("few", sizes=(8, 16, 24, 32, 40), seeds=2)
    other = make_study("other", "--target=0.5,0.9")
    good = make_study("published")
    assert choose_study([few_seeds, other, good], "bumps") is good
    assert choose_study([few_seeds, other], "bumps") is other
    more = make_study("more", "--steps=100", sizes=(8, 16, 20, 24, 32))
    assert choose_study([good, more], "bumps") is more
    assert choose_study([good], "nothing") is None
    assert "target=0.5,0.9" in judge(other).parts[0].note


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"seeds": 1}, "1 of at least 3 seeds at size 16"),
        ({"seeds": 2}, "2 of at least 3 seeds at size 16"),
        ({"sizes": (16, 24)}, "2 of at least 3 sizes"),
    ],
)
def test_a_small_study_decides_nothing(options: dict, reason: str) -> None:
    result = judge(make_study("study", **options))
    assert result.verdict is Verdict.UNDECIDED
    assert result.parts[0].reason == reason
