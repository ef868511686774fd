"""Numbers of measures come from one version of the code."""

import pytest

from tests.studies.claims.planted import (
    Run,
    judge_runs,
    plant_claim,
    set_measures,
    split_runs,
)
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.evidence import FIRST_SEED


def mix_versions(runs: tuple[Run, ...]) -> list[Run]:
    """The first seed was measured by another version."""
    first, others = split_runs(runs, "seed", FIRST_SEED)
    return set_measures(first, version="B") + set_measures(others, version="A")


@pytest.mark.parametrize("name", ["C3", "C4", "C9", "C13", "C17", "C18"])
def test_mixed_versions_decide_nothing(name: str) -> None:
    runs = mix_versions(plant_claim(name, "reproduced").runs)
    result = judge_runs(name, runs)
    assert result.verdict is Verdict.UNDECIDED
    reasons = {part.reason for part in result.parts if part.decides}
    assert any("tfcomp measure" in reason for reason in reasons)


@pytest.mark.parametrize("name", ["C1", "C2", "C12"])
def test_scores_of_training_have_no_such_version(name: str) -> None:
    runs = mix_versions(plant_claim(name, "reproduced").runs)
    assert judge_runs(name, runs).verdict is Verdict.REPRODUCED
