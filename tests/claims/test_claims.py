"""Every claim gets every verdict from evidence that deserves it."""

from __future__ import annotations

import dataclasses

import pytest

from tfcomp.claims.all_claims import CLAIMS
from tfcomp.claims.all_claims import judge
from tfcomp.claims.claim import judge_claim
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
    result = judge_claim(BY_NAME[name], Evidence())
    assert result.verdict is Verdict.NOT_RUN
    assert result.parts
    assert all(part.verdict is Verdict.NOT_RUN for part in result.parts)


@pytest.mark.parametrize("kind", ["reproduced", "refuted", "undecided"])
@pytest.mark.parametrize("name", NAMES)
def test_planted_verdicts(name: str, kind: str, plant_claim) -> None:
    result = judge_claim(BY_NAME[name], plant_claim(name, kind))
    assert result.verdict == kind, [
        (p.label, p.estimate, p.verdict, p.reason) for p in result.parts
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "C16"])
def test_two_seeds_decide_nothing(name: str, plant_claim, judge_runs) -> None:
    evidence = plant_claim(name, "reproduced")
    few = tuple(run for run in evidence.runs if run.seed < 2)
    result = judge_runs(name, few)
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
    evidence = plant_claim(name, "reproduced")
    bare = [
        dataclasses.replace(
            run,
            measures={},
            metrics={"id": run.metrics["id"], "ood": {}, "layers": {}},
        )
        if run.seed == 0
        else run
        for run in evidence.runs
    ]
    result = judge_runs(name, bare)
    assert result.verdict is Verdict.UNDECIDED


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
    evidence = plant_claim("C2", "reproduced")
    bump = [run for run in evidence.runs if run.flags["encoding"] == "bump"]
    result = judge_runs("C2", bump)
    assert result.verdict is Verdict.UNDECIDED
    assert result.reason == "1 of 2 reproduced, 1 of 2 not run"


def test_settings_that_cannot_be_compared(plant_claim, judge_runs) -> None:
    runs = []
    for run in plant_claim("C12", "reproduced").runs:
        is_plain = not run.flags["variance_weight"]
        epochs = 500 if is_plain else run.flags["epochs"]
        flags = run.flags | {"epochs": epochs}
        runs.append(dataclasses.replace(run, flags=flags))
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
    result = judge_claim(BY_NAME["C16"], Evidence(studies=(study,)))
    assert result.verdict is Verdict.UNDECIDED
    assert "did not reach" in result.parts[0].reason
    assert result.parts[1].reason == "2 sizes"


def test_models_with_different_stages_share_a_figure(plant_claim) -> None:
    runs = []
    for run in plant_claim("C10", "reproduced").runs:
        measures = dict(run.measures)
        if run.flags["model"] == "mlp":
            measures["stages"] = ["code", "stage_0", "image"]
            values = measures["log_volume_difference"]
            measures["log_volume_difference"] = values[:3]
        runs.append(dataclasses.replace(run, measures=measures))
    evidence = Evidence(tuple(runs))
    result = judge_claim(BY_NAME["C10"], evidence)
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
    name: str, plant_claim, make_planted_run, judge_runs
) -> None:
    evidence = plant_claim(name, "reproduced")
    stray = make_planted_run(
        "stripes_and_bumps.flags",
        0,
        "--num_bumps=25",
        relative=3.0,
        additive_share=[0.0, 0.1, 0.2, 0.3, 0.4],
        additive_share_weighted=[0.0, 0.1, 0.2, 0.3, 0.4],
    )
    result = judge_runs(name, evidence.runs, [stray])
    assert result.verdict is Verdict.REPRODUCED
    (first, *_) = result.parts
    assert "num_bumps=25 (1 seeds)" in first.groups[0].others


def test_other_superposers_stand_beside_c4(plant_claim, judge_runs) -> None:
    evidence = plant_claim("C4", "refuted")
    span = {"superposition_span_r2": 0.9, "conjunctive_span_r2": 0.7}
    runs = [
        dataclasses.replace(run, measures=run.measures | span)
        for run in evidence.runs
    ]
    result = judge_runs("C4", runs)
    beside = [part for part in result.parts if "any weights" in part.label]
    assert [part.estimate.mean for part in beside] == pytest.approx(
        [0.9, 0.2] * 2
    )
    assert not any(part.decides for part in beside)
    assert result.verdict is Verdict.REFUTED
