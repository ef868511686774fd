"""The choice of the candidate: by ID error, never by OOD."""

import dataclasses
from pathlib import Path

import pytest

from pipelines.rules import (
    Rules,
    TrialRow,
    choose_setting,
    choose_trial,
    read_trials,
)
from tfcomp.config.errors import RunError
from tfcomp.storage.files import write_csv

BOUNDS = {"id_mse": {"below": 1.0}}
# Depth 2 is better in distribution, depth 3 out of it.
SCORES = {
    ("2", 0): (0.3, 9.0),
    ("2", 1): (0.1, 8.0),
    ("3", 0): (0.4, 0.1),
    ("3", 1): (0.5, 0.2),
}


def make_rules(**changes: object) -> Rules:
    return Rules("a", "tiny", BOUNDS, choose_by="id_mse", **changes)


@pytest.fixture
def trials() -> list[TrialRow]:
    return [
        TrialRow(
            name=f"{depth}-{seed}",
            reason="",
            is_finished=True,
            setting={"depth": depth, "encoding": "bump"},
            seed=seed,
            scores=dict(zip(("id_mse", "ood_mse"), scores, strict=True)),
        )
        for (depth, seed), scores in SCORES.items()
    ]


def fail(trial: TrialRow) -> TrialRow:
    changes = {"is_finished": False, "scores": {}, "reason": "it diverged"}
    return dataclasses.replace(trial, **changes)


def test_best_setting_and_trial_by_id_error(trials: list[TrialRow]) -> None:
    setting = choose_setting(trials, make_rules())
    assert [t.name for t in setting] == ["2-0", "2-1"]
    assert choose_trial(setting, make_rules()).name == "2-1"


def test_declared_setting(trials: list[TrialRow]) -> None:
    # A number in the profile, text in the table.
    for depth in (3, 3.0, "3"):
        setting = choose_setting(trials, make_rules(setting={"depth": depth}))
        assert [t.name for t in setting] == ["3-0", "3-1"]
    assert choose_trial(setting, make_rules()).name == "3-0"


def test_failed_trials_are_not_chosen(trials: list[TrialRow]) -> None:
    trials[1] = fail(trials[1])
    assert len(choose_setting(trials, make_rules())) == 1
    two = choose_setting(trials, make_rules(min_seeds=2))
    assert [t.name for t in two] == ["3-0", "3-1"]


def test_trial_without_the_score_is_not_chosen(
    trials: list[TrialRow],
) -> None:
    trials[1].scores["id_mse"] = None
    setting = choose_setting(trials, make_rules())
    assert choose_trial(setting, make_rules()).name == "2-0"
    # Nor is it the best one where nobody has left it out before.
    assert choose_trial(trials, make_rules()).name == "2-0"


def test_nothing_to_choose(trials: list[TrialRow]) -> None:
    with pytest.raises(RunError, match="0 of 4 trials.*: it diverged"):
        choose_setting([*map(fail, trials)], make_rules())
    for absent in ({"depth": 9}, {"depth": 3, "encoding": "ramp"}):
        with pytest.raises(RunError, match=f"has no trials with {absent}"):
            choose_setting(trials, make_rules(setting=absent))


def test_table_of_a_sweep(tmp_path: Path) -> None:
    row = {"trial": "a", "status": "finished", "reason": "", "depth": 2}
    row |= {"seed": 1, "id_mse": 0.25, "ood_num_peaks": ""}
    lost = row | {"trial": "b", "status": "failed", "reason": "no, really"}
    write_csv(tmp_path / "trials.csv", [row, lost | {"id_mse": ""}])
    one, two = read_trials(tmp_path / "trials.csv")
    assert one.setting == {"depth": "2"} and one.seed == 1
    assert one.scores == {"id_mse": 0.25, "ood_num_peaks": None}
    assert one.is_finished and not two.is_finished
    assert two.reason == "no, really"


@pytest.mark.parametrize("content", [b"", b"\xff", b"trial\n1\n", b"a,seed\n1"])
def test_damaged_table_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_bytes(content)
    with pytest.raises(RunError, match="trials.csv is damaged"):
        read_trials(path)
