"""Trials: their names, and what is checked before anything runs."""

from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import define_run_flags, parse_flags
from tfcomp.sweeps import grid as grid_module
from tfcomp.sweeps.grid import Trial, make_trials


def make(
    settings: list[dict], seeds: list[int], *flags: str
) -> tuple[list[Trial], list[str]]:
    arguments = ["--flagfile=smoke.flags", "--run_name=sweep", *flags]
    return make_trials(
        parse_flags(arguments, define_run_flags()), settings, seeds
    )


def name(*flags: str, **setting: object) -> str:
    return make([setting], [0], *flags)[0][0].name


def test_trials_are_settings_times_seeds() -> None:
    trials, notes = make([{"depth": 2}, {"depth": 3}], [4, 5])
    described = [trial.describe() for trial in trials]
    assert described == [
        "depth=2 seed=4",
        "depth=2 seed=5",
        "depth=3 seed=4",
        "depth=3 seed=5",
    ]
    assert [t.config.model.depth for t in trials] == [2, 2, 3, 3]
    assert [t.config.training.seed for t in trials] == [4, 5, 4, 5]
    assert len({trial.name for trial in trials}) == 4
    assert notes == []


def test_folders_of_a_trial() -> None:
    (trial,), _ = make([{}], [0], "--log_dir=logs", "--export_dir=models")
    assert trial.path == Path("logs/sweep/trials") / trial.name
    assert trial.config.export_path == f"models/sweep/{trial.name}"
    assert len(trial.name) == 16 and int(trial.name, 16) >= 0
    assert trial.config.resume


def test_the_name_follows_from_what_is_computed() -> None:
    same = name()
    assert same == name("--run_name=other", "--log_dir=elsewhere")
    assert same == name("--data_dir=/data", "--resume", "--pictures")
    assert same == name("--seed=7")  # the seed is the sweep's
    assert same == name(depth=2)  # as the flagfile has it
    others = {name(depth=3), name(learning_rate=1e-4), name(width=17)}
    assert len(others | {same}) == 4


def test_the_name_follows_from_the_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = name()
    monkeypatch.setattr(
        grid_module, "compute_code_version", lambda plugins: "other"
    )
    assert name() != before


def test_every_combination_is_checked() -> None:
    with pytest.raises(ConfigError, match="--region must lie in the range"):
        make([{"grid_size": 12}, {"grid_size": 8}], [0])
    with pytest.raises(ConfigError, match="--depth must be at least 2"):
        make([{"depth": 1}], [0])
    with pytest.raises(ConfigError, match="--encoding must be one of"):
        make([{"encoding": "morse"}], [0])
