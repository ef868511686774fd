"""Rules of settings, and settings of plugins: flags, identity, sweeps."""

import dataclasses
import sys
from pathlib import Path

import pandas as pd
import pytest

from tfcomp import train
from tfcomp.config import run_flags, settings
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import admit_plugins
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.settings import Settings, declare_setting, setting
from tfcomp.statistics.limits import REAL
from tfcomp.statistics.seed_statistics import summarize
from tfcomp.sweeps.sweep_run import define_flags, make_sweep
from tfcomp.tables.flatten import NO_FLAGS


@dataclasses.dataclass(frozen=True)
class Ruled(Settings):
    """One setting for every rule."""

    size: int = setting(4, "Size.", minimum=2, maximum=8)
    count: int = setting(4, "Count.")
    scale: float = setting(1.0, "Scale.", above=0.0)
    kind: str = setting("a", "Kind.", choices=("a", "b"))
    again: bool = setting(False, "Again.")


@pytest.mark.parametrize(
    "name, value, rule",
    [
        ("size", 1, "must be at least 2"),
        ("size", 9, "must be at most 8"),
        ("size", 4.0, "must be an integer"),
        ("size", True, "must be an integer"),
        ("count", 10**7 + 1, "must be at most 10000000"),
        ("scale", 1e300, "must be at most 1e+30"),
        ("scale", 10**400, "must be at most 1e+30"),
        ("scale", 0.0, "must be greater than 0.0"),
        ("scale", None, "must be a number"),
        ("scale", float("nan"), "must be a finite number"),
        ("kind", "c", "must be one of: a, b"),
        ("kind", 3, "must be a string"),
        ("again", 1, "must be true or false"),
    ],
)
def test_rules(name: str, value: object, rule: str):
    with pytest.raises(ConfigError) as caught:
        Ruled(**{name: value})
    message = f"--{name} {rule}, got {value!r}"
    assert str(caught.value).startswith(message[:200])
    assert len(str(caught.value)) < 300


# Settings of plugins

SOURCE = """
from tfcomp.config.settings import declare_setting
declare_setting("petals", 5, "Petals of a flower.", minimum=1)
declare_setting("scent", "rose", "Its scent.", choices=("rose", "none"))
declare_setting("wild", False, "It grows by itself.")
"""
PLUGIN = "--plugins=flowers"


def test_a_path_that_exists_is_not_split(working_folder: Path):
    (working_folder / "old, runs").mkdir()
    assert settings.split_paths("old, runs") == ["old, runs"]
    assert settings.split_paths(" a ,b/*,") == ["a", "b/*"]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a plugin, which is on the import path."""
    monkeypatch.setattr(settings, "_DECLARED", {})
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "flowers.py"
    path.write_text(SOURCE)
    monkeypatch.delitem(sys.modules, "flowers", raising=False)
    return path


def test_settings_become_flags_and_identity(plugin: Path):
    config = run_flags.parse_config([PLUGIN, "--petals=7"])
    assert config.own == {"petals": 7, "scent": "rose", "wild": False}
    assert config.identity()["petals"] == 7
    assert make_config(config.to_flags()) == config

    wild = run_flags.parse_config(["--wild", PLUGIN, "--petals", "7"])
    assert wild.own == config.own | {"wild": True}
    assert not run_flags.parse_config([]).own


def test_a_setting_of_a_notebook(plugin: Path):
    declare_setting("leaves", 2, "Declared in a notebook.")
    assert run_flags.parse_config(["--leaves=3"]).own == {"leaves": 3}


def test_grid_over_an_own_setting(plugin: Path):
    arguments = [PLUGIN, "--grid=petals=3,4", "--seeds=1"]
    sweep = make_sweep(run_flags.parse_flags(arguments, define_flags()))
    assert [t.config.own["petals"] for t in sweep.items] == [3, 4]
    assert len({trial.name for trial in sweep.items}) == 2


def test_a_record_imports_nothing(plugin: Path, tmp_path: Path):
    config = run_flags.parse_config([PLUGIN, "--petals=7"])
    path = tmp_path / "run.flags"
    path.write_text(run_flags.format_flags(config))
    lines = path.read_text().splitlines()
    record = run_flags.parse_record(lines)
    assert make_config(record) == config

    del sys.modules["flowers"]
    settings._DECLARED.clear()

    assert run_flags.parse_record(lines)["petals"] == "7"
    assert "flowers" not in sys.modules
    with pytest.raises(RunError, match=PLUGIN):
        run_flags.parse_flags([f"--flagfile={path}"], define_flags())
    with pytest.raises(RunError, match=PLUGIN):
        admit_plugins(path, "flowers")


@pytest.mark.parametrize(
    "name, default, rules, problem",
    [
        ("petals", 6, {}, "already"),
        ("two words", 1, {}, "variable"),
        ("lowest", 1, {"minimum": 2}, "at least 2"),
        ("value", 1, {}, "column"),
    ],
)
def test_impossible_declarations(
    plugin: Path,
    name: str,
    default: int,
    rules: dict,
    problem: str,
):
    declare_setting("petals", 5, "Petals.")
    declare_setting("petals", 5, "Petals.")  # imported again
    with pytest.raises(ValueError, match=problem):
        declare_setting(name, default, "Help.", **rules)


def test_no_setting_is_named_as_a_column():
    """Else sweeps end in errors, and `compare` averages two values of it."""
    row = {"a": 1, "score": 1, "value": 1, "seed": 0}
    summary = summarize(pd.DataFrame([row]), ["a", "score"], lambda _: REAL)
    flags = set(RunConfig().to_flags())
    columns = set(summary) | (NO_FLAGS - flags)
    assert columns - {"a"} <= set(settings.COLUMNS)


def test_name_of_another_flag(plugin: Path):
    plugin.write_text(SOURCE.replace("petals", "seed"))
    with pytest.raises(RunError, match="--seed"):
        run_flags.parse_config([PLUGIN])


def test_help_lists_them(plugin: Path, capsys: pytest.CaptureFixture):
    assert train.main(["train", PLUGIN, "--help"]) == 0
    assert "--petals=5" in capsys.readouterr().out
