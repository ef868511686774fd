"""Arms of a comparison are chosen together, and trained alike (C12 to C17)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tfcomp.claims.all_claims import CLAIMS
from tfcomp.claims.claim import judge_claim
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments.stripe_training import UNIFORMITY
from tfcomp.claims.families import count_steps
from tfcomp.claims.flag_text import parse_run_flags
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import list_differences
from tfcomp.claims.verdict import Verdict
from tfcomp.config.flagfiles import expand_flagfiles

PROFILE = Path(__file__).parents[2] / "pipelines" / "profiles" / "paper"
C12, C13, C17 = CLAIMS[11], CLAIMS[12], CLAIMS[16]


def with_flags(runs, **flags) -> list:
    return [dataclasses.replace(run, flags=run.flags | flags) for run in runs]


def judge(claim, *runs):
    return judge_claim(
        claim, Evidence(tuple(r for group in runs for r in group))
    )


@pytest.mark.parametrize("claim", [C12, C13])
def test_more_runs_of_one_arm_undo_nothing(claim, plant_claim) -> None:
    published = plant_claim(claim.name, "reproduced").runs
    short = with_flags(published, epochs=500)
    both = [
        run
        for run in published
        if run.flags["entropy_weight"] and run.flags["variance_weight"]
    ]
    result = judge(claim, short, both[:3])
    assert result.verdict is Verdict.REPRODUCED
    for part in result.parts:
        assert {run.flags["epochs"] for run in part.runs} == {500}
    # What is not used is named.
    groups = [group for part in result.parts for group in part.groups]
    assert any("(3 seeds)" in other for g in groups for other in g.others)


def test_the_nearest_of_two_whole_families(plant_claim) -> None:
    published = plant_claim("C12", "refuted").runs
    short = with_flags(plant_claim("C12", "reproduced").runs, epochs=500)
    for runs in ((published, short), (short, published)):
        result = judge(C12, *runs)
        assert result.verdict is Verdict.REFUTED
        used = {run.flags["epochs"] for p in result.parts for run in p.runs}
        assert used == {published[0].flags["epochs"]}


def test_stripes_are_compared_after_equal_training(plant_claim) -> None:
    runs = plant_claim("C17", "reproduced").runs
    plain = [run for run in runs if run.flags["dataset"] == "gaussian_bumps"]
    striped = [run for run in runs if run not in plain]
    short = with_flags(striped, epochs=25, steps_per_epoch=40)
    result = judge(C17, plain, short)
    assert result.verdict is Verdict.UNDECIDED
    reason = "not comparable: 3150 training steps and 1000"
    assert result.parts[0].reason == reason
    # With both there are two that are alike, and the short ones beside.
    result = judge(C17, short, plain, striped)
    assert result.verdict is Verdict.REPRODUCED
    # As many steps in other epochs are as many steps.
    longer = with_flags(striped, epochs=25, steps_per_epoch=126)
    assert judge(C17, plain, longer).verdict is Verdict.REPRODUCED


def test_the_paper_profile_makes_the_comparison() -> None:
    striped, plain = (
        parse_run_flags("\n".join(expand_flagfiles([f"--flagfile={file}"])))[0]
        for file in (
            PROFILE / "stripes_long.flags",
            PROFILE / "corner_bright.flags",
        )
    )
    assert count_steps(striped) == count_steps(plain)
    assert list_differences(striped, plain, UNIFORMITY.free) == []
    assert (striped["dataset"], striped["num_bumps"]) == ("stripes", 50)


def test_an_epoch_of_unknown_length(plant_claim) -> None:
    runs = plant_claim("C17", "reproduced").runs
    first = Group(tuple(with_flags(runs[:1], steps_per_epoch=0)))
    assert "not known" in UNIFORMITY.find_mismatch(first, first)
    assert UNIFORMITY.find_mismatch(first, Group()) == ""


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
def test_stripes_must_be_trained(kind: str, plant_claim) -> None:
    runs = []
    for run in plant_claim("C17", kind).runs:
        if run.flags["dataset"] == "stripes":
            # Accurate on average, but not with the whole interval.
            accuracy = {"position_accuracy": 0.90 + 0.04 * (run.seed % 3)}
            metrics = run.metrics | {"id": run.metrics["id"] | accuracy}
            run = dataclasses.replace(run, metrics=metrics)
        runs.append(run)
    result = judge(C17, runs)
    assert result.verdict is Verdict.UNDECIDED
    assert result.parts[0].reason.startswith("not fitted: ID position accuracy")


def test_the_error_on_bumps_is_no_test_of_stripes(plant_claim) -> None:
    runs = []
    for run in plant_claim("C17", "reproduced").runs:
        if run.flags["dataset"] == "stripes":
            metrics = run.metrics | {
                "id": run.metrics["id"] | {"relative_mse": 9.5}
            }
            run = dataclasses.replace(run, metrics=metrics)
        runs.append(run)
    assert judge(C17, runs).verdict is Verdict.REPRODUCED
