"""C16: one study decides, of enough sizes and seeds, and says so."""

import dataclasses

import pandas
import pytest

from tests.studies.claims.planted import (
    DONUT_SEARCH,
    Planted,
    judge_evidence,
    make_study,
    plant_claim,
)
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims import write_report
from tfcomp.studies.claims.claim_report import describe_origin
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments.data_needed import choose_study
from tfcomp.studies.claims.result_text import describe_part
from tfcomp.studies.claims.searches import count_searches


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


def test_preference_does_not_look_at_slopes() -> None:
    for shift in (0.0, -2.0):
        first = make_study("a", shift=shift)
        assert choose_study([make_study("b"), first], "bumps") is first


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


def test_words_of_the_report(tmp_path) -> None:
    study = make_study("study")
    part = judge(study).parts[0]
    assert "n = 4 sizes, reproduced" in describe_part(part)
    runs = plant_claim("C2", "reproduced").runs
    report = write_report(Planted(runs, (study,)).gather(), tmp_path)
    page = report.page.read_text("utf-8")
    assert page.count("<td>4 sizes</td>") == 2
    header, *rows = (tmp_path / "claims.csv").read_text().splitlines()
    assert "n,n_of," in header
    assert sum(",4,sizes," in row for row in rows) == 2


@pytest.mark.parametrize("criteria", [1, 2])
def test_a_search_counts_once(criteria: int) -> None:
    study = make_study("study")
    tables = [
        study.thresholds.assign(criterion=name)
        for name in ("position_accuracy", "relative_mse")[:criteria]
    ]
    study = dataclasses.replace(study, thresholds=pandas.concat(tables))
    assert count_searches([study]) == 24  # two kinds, four sizes, three seeds
    assert count_searches([study, make_study("another")]) == 48
    facts = describe_origin(Evidence(studies=(study,)), [])
    assert facts["threshold searches"] == "24"
