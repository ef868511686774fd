"""Every claim gets every verdict from evidence that deserves it."""

import dataclasses

import pytest

from tests.studies.claims.planted import (
    change_scores,
    judge_evidence,
    judge_runs,
    make_runs,
    plant_claim,
    set_flags,
    set_measures,
    split_runs,
)
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.all_claims import CLAIMS
from tfcomp.studies.claims.evidence import FIRST_SEED, Evidence

NAMES = [claim.name for claim in CLAIMS]
BY_NAME = {claim.name: claim for claim in CLAIMS}
BUMP = ("encoding", "bump")
# Claims on networks that must have learned what they were shown.
ON_FITTED = [f"C{n}" for n in range(1, 11)] + ["C17", "C19", "C20"]


@pytest.mark.parametrize("name", NAMES)
def test_without_evidence_nothing_is_run(name: str) -> None:
    result = BY_NAME[name].judge(Evidence())
    assert result.verdict is Verdict.NOT_RUN
    assert result.parts
    assert all(part.verdict is Verdict.NOT_RUN for part in result.parts)


@pytest.mark.parametrize("kind", ["reproduced", "refuted", "undecided"])
@pytest.mark.parametrize("name", NAMES)
def test_planted_verdicts(name: str, kind: str) -> None:
    result = judge_evidence(name, plant_claim(name, kind))
    assert result.verdict == kind, [
        (p.label, p.estimate, p.verdict, p.reason) for p in result.parts
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "C16"])
def test_two_seeds_decide_nothing(name: str) -> None:
    runs = plant_claim(name, "reproduced").runs
    result = judge_runs(
        name, [run for run in runs if run.seed < FIRST_SEED + 2]
    )
    assert result.verdict is Verdict.UNDECIDED
    assert "of at least 3 seeds" in result.parts[0].reason


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
@pytest.mark.parametrize("name", ON_FITTED)
def test_an_underfitted_network_proves_nothing(name: str, kind: str) -> None:
    runs = change_scores(
        plant_claim(name, kind).runs,
        relative_mse=lambda seed: 0.3 + 0.01 * seed,
    )
    result = judge_runs(name, runs)
    assert result.verdict is Verdict.UNDECIDED
    reasons = {part.reason for part in result.parts if part.decides}
    assert any("not fitted" in reason for reason in reasons)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "C16"])
def test_a_missing_number_is_not_left_out_of_the_mean(name: str) -> None:
    runs = plant_claim(name, "reproduced").runs
    first, others = split_runs(runs, "seed", FIRST_SEED)
    bare = [
        dataclasses.replace(run, measures={}, metrics={"id": run.metrics["id"]})
        for run in first
    ]
    assert judge_runs(name, bare, others).verdict is Verdict.UNDECIDED


def test_one_false_part_refutes_the_claim() -> None:
    bump, _ = split_runs(plant_claim("C5", "reproduced").runs, *BUMP)
    _, ramp = split_runs(plant_claim("C5", "refuted").runs, *BUMP)
    result = judge_runs("C5", bump, ramp)
    assert result.verdict is Verdict.REFUTED
    assert result.reason == "2 of 4 reproduced, 2 of 4 refuted"


def test_a_required_part_that_is_missing_leaves_the_claim_open() -> None:
    bump, _ = split_runs(plant_claim("C2", "reproduced").runs, *BUMP)
    result = judge_runs("C2", bump)
    assert result.verdict is Verdict.UNDECIDED
    assert result.reason == "2 of 4 reproduced, 2 of 4 not run"


def test_settings_that_cannot_be_compared() -> None:
    runs = plant_claim("C12", "reproduced").runs
    short, others = split_runs(runs, "variance_weight", 0)
    result = judge_runs("C12", set_flags(short, epochs=500), others)
    reasons = {part.label: part.reason for part in result.parts}
    assert "not comparable" in reasons["entropy over variance"]
    assert "epochs" in reasons["entropy over variance"]
    assert reasons["none over entropy"] == ""
    assert result.verdict is Verdict.UNDECIDED


def test_slopes_without_a_fit() -> None:
    study, other = plant_claim("C16", "reproduced").studies
    slopes = study.slopes.copy()
    slopes.loc[0, "not_reached"] = 2
    slopes.loc[1, ["slope", "low", "high"]] = None
    slopes.loc[1, "note"] = "2 sizes"
    study = dataclasses.replace(study, slopes=slopes)
    result = judge_evidence("C16", Evidence(studies=(study, other)))
    assert result.verdict is Verdict.UNDECIDED
    assert "did not reach" in result.parts[0].reason
    assert result.parts[1].reason == "2 sizes"


@pytest.mark.parametrize("name", ["C15", "C18"])
def test_a_stray_number_of_bumps_undoes_nothing(name: str) -> None:
    stages = [-1.0, 0.9, 0.6, 0.3, 0.0]
    stray = make_runs(
        "stripes_and_bumps.flags",
        "--num_bumps=25",
        seeds=[FIRST_SEED],
        relative=3.0,
        interaction_r2_ood=-1.0,
        product_less_sum=stages,
        start={"product_less_sum": stages[::-1]},
    )
    runs = plant_claim(name, "reproduced").runs
    assert judge_runs(name, runs, stray).verdict is Verdict.REPRODUCED


def test_numbers_of_an_older_definition_are_not_judged() -> None:
    """C21: without `no_peak_ood`, peaks of faint noise were counted."""
    runs = plant_claim("C21", "reproduced").runs
    old = set_measures(runs, no_peak_ood=None)
    result = judge_runs("C21", old)
    assert result.verdict is Verdict.UNDECIDED
    assert "lack this number" in result.parts[0].reason
