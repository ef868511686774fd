"""The choice of the candidate: by ID error, never by OOD."""

from pathlib import Path

import pytest
from pandas import DataFrame

from pipelines.rules import Rules, choose_setting, read_trials
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
def path(tmp_path: Path) -> Path:
    """The table of a sweep, as the command writes it."""
    rows = [
        {"trial": f"{depth}-{seed}", "status": "finished", "reason": ""}
        | {"depth": depth, "encoding": "bump", "seed": seed}
        | dict(zip(("id_mse", "ood_mse"), scores, strict=True))
        for (depth, seed), scores in SCORES.items()
    ]
    write_csv(tmp_path / "trials.csv", rows)
    return tmp_path / "trials.csv"


@pytest.fixture
def trials(path: Path) -> DataFrame:
    return read_trials(path)


def fail(trials: DataFrame, *rows: int) -> None:
    trials.loc[list(rows), ["status", "reason"]] = "failed", "it diverged"
    trials.loc[list(rows), ["id_mse", "ood_mse"]] = float("nan")


def choose(trials: DataFrame, **changes: object) -> list[str]:
    return list(choose_setting(trials, make_rules(**changes))["trial"])


def test_best_setting_and_trial_by_id_error(trials: DataFrame) -> None:
    assert choose(trials) == ["2-1", "2-0"]


@pytest.mark.parametrize("depth", [3, 3.0, "3"])
def test_declared_setting(trials: DataFrame, depth: object) -> None:
    assert choose(trials, setting={"depth": depth}) == ["3-0", "3-1"]


def test_failed_trials_are_not_chosen(trials: DataFrame) -> None:
    fail(trials, 1)
    assert choose(trials) == ["2-0"]
    assert choose(trials, min_seeds=2) == ["3-0", "3-1"]


def test_nothing_to_choose(trials: DataFrame) -> None:
    for absent in ({"depth": 9}, {"depth": 3, "encoding": "ramp"}):
        with pytest.raises(RunError, match=f"has no trials with {absent}"):
            choose(trials, setting=absent)
    with pytest.raises(RunError, match="at most 0 finished trials with id_mse"):
        choose(trials.drop(columns="id_mse"))
    fail(trials, 0, 1, 2, 3)
    with pytest.raises(RunError, match="at most 0 finished .*: it diverged"):
        choose(trials)


def test_table_of_a_sweep(path: Path) -> None:
    path.write_text(path.read_text().replace("0.1,8.0", "0.1,"))
    table = read_trials(path)
    assert table["setting"][1] == {"depth": "2", "encoding": "bump"}
    assert table["id_mse"][1] == 0.1 and table["ood_mse"].isna()[1]
