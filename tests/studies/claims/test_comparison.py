"""Arms of a comparison are chosen together, and trained alike (C12 to C17)."""

from pathlib import Path

import pytest

from tests.studies.claims.planted import (
    change_scores,
    judge_runs,
    plant_claim,
    set_flags,
    split_runs,
)
from tfcomp.statistics.verdicts import Verdict

# Runs on bumps alone, of all that C17 needs.
PLAIN = ("dataset", "gaussian_bumps")
PROFILE = Path(__file__).parents[3] / "pipelines" / "profiles" / "paper"


def test_more_runs_of_one_arm_undo_nothing() -> None:
    published = plant_claim("C13", "reproduced").runs
    short = set_flags(published, epochs=500)
    both = [
        run
        for run in published
        if run.flags["entropy_weight"] and run.flags["variance_weight"]
    ]
    result = judge_runs("C13", short, both[:3])
    assert result.verdict is Verdict.REPRODUCED
    for part in result.parts:
        assert {group.flags["epochs"] for group in part.groups} == {500}
    # What is not used is named.
    groups = [group for part in result.parts for group in part.groups]
    assert any("(3 seeds)" in other for g in groups for other in g.others)


def test_the_nearest_of_two_whole_families() -> None:
    published = plant_claim("C12", "refuted").runs
    short = set_flags(plant_claim("C12", "reproduced").runs, epochs=500)
    for runs in ((published, short), (short, published)):
        result = judge_runs("C12", *runs)
        assert result.verdict is Verdict.REFUTED
        used = {g.flags["epochs"] for p in result.parts for g in p.groups}
        assert used == {published[0].flags["epochs"]}


def test_stripes_are_compared_after_equal_training() -> None:
    plain, striped = split_runs(plant_claim("C17", "reproduced").runs, *PLAIN)
    short = set_flags(striped, epochs=25, steps_per_epoch=40)
    result = judge_runs("C17", plain, short)
    assert result.verdict is Verdict.UNDECIDED
    reason = "not comparable: 3150 training steps and 1000"
    assert result.parts[0].reason == reason
    # With both there are two that are alike, and the short ones beside.
    result = judge_runs("C17", short, plain, striped)
    assert result.verdict is Verdict.REPRODUCED
    # As many steps in other epochs are as many steps.
    longer = set_flags(striped, epochs=25, steps_per_epoch=126)
    assert judge_runs("C17", plain, longer).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
def test_stripes_must_be_trained(kind: str) -> None:
    plain, striped = split_runs(plant_claim("C17", kind).runs, *PLAIN)
    striped = change_scores(striped, position_accuracy=lambda seed: 0.90)
    result = judge_runs("C17", plain, striped)
    assert result.verdict is Verdict.UNDECIDED
    assert result.parts[0].reason == "not fitted: 0 of 10 fitted"


def test_the_error_on_bumps_is_no_test_of_stripes() -> None:
    plain, striped = split_runs(plant_claim("C17", "reproduced").runs, *PLAIN)
    striped = change_scores(striped, relative_mse=lambda seed: 9.5)
    assert judge_runs("C17", plain, striped).verdict is Verdict.REPRODUCED
