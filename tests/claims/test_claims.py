"""Every claim gets every verdict from evidence that deserves it."""

from __future__ import annotations

import dataclasses

import pytest

from tfcomp.claims.all_claims import CLAIMS
from tfcomp.claims.all_claims import judge
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.verdict import Verdict

NAMES = [claim.name for claim in CLAIMS]
BY_NAME = {claim.name: claim for claim in CLAIMS}
# Claims on networks that must have learned what they were shown.
ON_FITTED = [f"C{n}" for n in range(1, 11)] + ["C17", "C19", "C20"]


def test_all_claims_are_there_once() -> None:
    assert NAMES == [f"C{number}" for number in range(1, 21)]
    for claim in CLAIMS:
        for text in (claim.title, claim.statement, claim.rule, claim.method):
            assert text.strip()


@pytest.mark.parametrize("name", NAMES)
def test_without_evidence_nothing_is_run(name: str) -> None:
    result = BY_NAME[name].judge(Evidence())
    assert result.verdict is Verdict.NOT_RUN
    assert result.parts
    assert all(part.verdict is Verdict.NOT_RUN for part in result.parts)


@pytest.mark.parametrize("kind", ["reproduced", "refuted", "undecided"])
@pytest.mark.parametrize("name", NAMES)
def test_planted_verdicts(name: str, kind: str, plant_claim) -> None:
    result = BY_NAME[name].judge(plant_claim(name, kind))
    assert result.verdict == kind, [
        (p.label, p.estimate, p.verdict, p.reason) for p in result.parts
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "C16"])
def test_two_seeds_decide_nothing(name: str, plant_claim, judge_runs) -> None:
    runs = plant_claim(name, "reproduced").runs
    result = judge_runs(name, [run for run in runs if run.seed < 2])
    assert result.verdict is Verdict.UNDECIDED
    assert "of at least 3 seeds" in result.parts[0].reason


@pytest.mark.parametrize("kind", ["reproduced", "refuted"])
@pytest.mark.parametrize("name", ON_FITTED)
def test_an_underfitted_network_proves_nothing(
    name: str, kind: str, plant_claim, change_scores, judge_runs
) -> None:
    runs = change_scores(
        plant_claim(name, kind).runs,
        relative_mse=lambda seed: 0.3 + 0.01 * seed,
    )
    result = judge_runs(name, runs)
    assert result.verdict is Verdict.UNDECIDED
    reasons = {part.reason for part in result.parts if part.decides}
    assert any("not fitted" in reason for reason in reasons)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "C16"])
def test_a_missing_number_is_not_left_out_of_the_mean(
    name: str, plant_claim, judge_runs
) -> None:
    runs = plant_claim(name, "reproduced").runs
    bare = [
        dataclasses.replace(run, measures={}, metrics={"id": run.metrics["id"]})
        for run in runs
        if run.seed == 0
    ]
    others = [run for run in runs if run.seed]
    assert judge_runs(name, bare, others).verdict is Verdict.UNDECIDED


def test_one_false_part_refutes_the_claim(plant_claim, judge_runs) -> None:
    good, bad = (plant_claim("C4", kind) for kind in ("reproduced", "refuted"))
    mixed = [run for run in good.runs if run.flags["encoding"] == "bump"]
    mixed += [run for run in bad.runs if run.flags["encoding"] == "ramp"]
    result = judge_runs("C4", mixed)
    assert result.verdict is Verdict.REFUTED
    assert result.reason == "3 of 4 reproduced, 1 of 4 refuted"


def test_a_required_part_that_is_missing_leaves_the_claim_open(
    plant_claim, judge_runs
) -> None:
    runs = plant_claim("C2", "reproduced").runs
    bump = [run for run in runs if run.flags["encoding"] == "bump"]
    result = judge_runs("C2", bump)
    assert result.verdict is Verdict.UNDECIDED
    assert result.reason == "1 of 2 reproduced, 1 of 2 not run"


def test_settings_that_cannot_be_compared(plant_claim, judge_runs) -> None:
    runs = [
        run
        if run.flags["variance_weight"]
        else dataclasses.replace(run, flags=run.flags | {"epochs": 500})
        for run in plant_claim("C12", "reproduced").runs
    ]
    result = judge_runs("C12", runs)
    reasons = {part.label: part.reason for part in result.parts}
    assert "not comparable" in reasons["entropy over variance"]
    assert "epochs" in reasons["entropy over variance"]
    assert reasons["none over entropy"] == ""
    assert result.verdict is Verdict.UNDECIDED


def test_slopes_without_a_fit(plant_claim) -> None:
    (study,) = plant_claim("C16", "reproduced").studies
    slopes = study.slopes.copy()
    slopes.loc[0, "not_reached"] = 2
    slopes.loc[1, ["slope", "low", "high"]] = None
    slopes.loc[1, "note"] = "2 sizes"
    study = dataclasses.replace(study, slopes=slopes)
    result = BY_NAME["C16"].judge(Evidence(studies=(study,)))
    assert result.verdict is Verdict.UNDECIDED
    assert "did not reach" in result.parts[0].reason
    assert result.parts[1].reason == "2 sizes"


def test_models_with_different_stages_share_a_figure(plant_claim) -> None:
    runs = plant_claim("C10", "reproduced").runs
    short = {"stages": ["code", "stage_0", "image"]}
    short["log_volume_difference"] = [0.0, 0.5, 0.5]
    evidence = Evidence(
        tuple(
            dataclasses.replace(run, measures=run.measures | short)
            if run.flags["model"] == "mlp"
            else run
            for run in runs
        )
    )
    result = BY_NAME["C10"].judge(evidence)
    assert result.verdict is Verdict.REPRODUCED
    (figure,) = BY_NAME["C10"].draw(evidence).values()
    lines = [len(axes.get_lines()[0].get_xdata()) for axes in figure.axes]
    assert lines == [5, 3]


def test_claims_do_not_disturb_each_other(everything) -> None:
    results = {result.claim.name: result for result in judge(everything)}
    assert results["C16"].verdict is Verdict.UNDECIDED
    for name in ("C2", "C11", "C12", "C20"):
        assert results[name].verdict is not Verdict.NOT_RUN


@pytest.mark.parametrize("name", ["C15", "C18"])
def test_a_stray_number_of_bumps_undoes_nothing(
    name: str, plant_claim, make_runs, judge_runs
) -> None:
    rising = [0.0, 0.1, 0.2, 0.3, 0.4]
    stray = make_runs(
        "stripes_and_bumps.flags",
        "--num_bumps=25",
        seeds=[0],
        relative=3.0,
        additive_share=rising,
        additive_share_weighted=rising,
    )
    runs = plant_claim(name, "reproduced").runs
    result = judge_runs(name, runs, stray)
    assert result.verdict is Verdict.REPRODUCED
    (first, *_) = result.parts
    assert "num_bumps=25 (1 seeds)" in first.groups[0].others


def test_other_superposers_stand_beside_c4(plant_claim, judge_runs) -> None:
    span = {"superposition_span_r2": 0.9, "conjunctive_span_r2": 0.7}
    runs = [
        dataclasses.replace(run, measures=run.measures | span)
        for run in plant_claim("C4", "refuted").runs
    ]
    result = judge_runs("C4", runs)
    beside = [part for part in result.parts if "any weights" in part.label]
    assert [part.estimate.mean for part in beside] == pytest.approx(
        [0.9, 0.2] * 2
    )
    assert not any(part.decides for part in beside)
    assert result.verdict is Verdict.REFUTED
