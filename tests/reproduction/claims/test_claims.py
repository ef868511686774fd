"""Every claim gets every verdict from evidence that deserves it."""

import pytest

from reproduction.claims.controls import Kind, read_declarations
from reproduction.claims.evidence import FIRST_SEED
from reproduction.verdicts import Verdict
from tests.reproduction.claims.planted import (
    BY_NAME,
    KINDS,
    judge_evidence,
    judge_runs,
    plant_claim,
    set_flags,
    set_measures,
    set_scores,
    split_runs,
)

NAMES = list(BY_NAME)
OF_RUNS = [name for name in NAMES if name != "C16"]
BUMP = ("encoding", "bump")
# Claims on networks that must have learned what they were shown.
ON_FITTED = [f"C{n}" for n in range(1, 11)] + ["C17", "C19", "C20"]


def test_all_claims_are_there_with_controls_of_both_kinds() -> None:
    assert NAMES == [f"C{number}" for number in range(1, 23)]
    assert list(read_declarations()) == ["versions", "settings", *NAMES]
    for claim in BY_NAME.values():
        kinds = {control.kind for control in claim.controls}
        assert kinds >= {Kind.POSITIVE, Kind.NEGATIVE}
        assert all((claim.title, claim.statement, claim.rule, claim.method))


@pytest.mark.parametrize("name", NAMES)
def test_planted_verdicts_have_sentences_of_their_own(name: str) -> None:
    texts = set()
    for kind in KINDS:
        result = judge_evidence(name, plant_claim(name, kind))
        assert result.verdict == kind, result.parts
        texts.add(result.meaning)
    assert len(texts) == 3 and all(texts)


@pytest.mark.parametrize("name", OF_RUNS)
def test_two_seeds_or_a_missing_number_decide_nothing(name: str) -> None:
    runs = plant_claim(name, "reproduced").runs
    result = judge_runs(name, [r for r in runs if r.seed < FIRST_SEED + 2])
    assert result.verdict is Verdict.UNDECIDED
    assert "of at least 3 seeds" in result.parts[0].reason
    # A missing number is not left out of the mean.
    first, others = split_runs(runs, "seed", FIRST_SEED)
    bare = [
        r._replace(measures={}, metrics={"id": r.metrics["id"]}) for r in first
    ]
    assert judge_runs(name, bare, others).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("name", ON_FITTED)
def test_an_underfitted_network_proves_nothing(name: str) -> None:
    runs = plant_claim(name, "reproduced").runs
    runs = set_scores(runs, "id", relative_mse=lambda seed: 0.3 + 0.01 * seed)
    result = judge_runs(name, runs)
    assert result.verdict is Verdict.UNDECIDED
    reasons = {part.reason for part in result.parts if part.decides}
    assert any("not fitted" in reason for reason in reasons)


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


def test_numbers_of_an_older_definition_are_not_judged() -> None:
    """C21: without `no_peak_ood`, peaks of faint noise were counted."""
    runs = plant_claim("C21", "reproduced").runs
    old = set_measures(runs, no_peak_ood=None)
    result = judge_runs("C21", old)
    assert result.verdict is Verdict.UNDECIDED
    assert "lack this number" in result.parts[0].reason


@pytest.mark.parametrize("name", ["C3", "C4", "C12", "C13", "C17"])
def test_numbers_of_several_versions_of_the_code_decide_nothing(name) -> None:
    runs = plant_claim(name, "reproduced").runs
    first, others = split_runs(runs, "seed", FIRST_SEED)
    mixed = set_measures(first, version="B"), set_measures(others, version="A")
    result = judge_runs(name, *mixed)
    if name == "C12":  # on scores of training, which have no version
        assert result.verdict is Verdict.REPRODUCED
        return
    assert result.verdict is Verdict.UNDECIDED
    reasons = {part.reason for part in result.parts if part.decides}
    assert any("tfcomp measure" in reason for reason in reasons)
