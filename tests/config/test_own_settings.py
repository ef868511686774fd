"""Settings of plugins: flags, identity, sweeps, refusals."""

import sys
from pathlib import Path

import pandas as pd
import pytest

from tfcomp import train
from tfcomp.config import run_flags, settings
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import admit_plugins
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.settings import declare_setting
from tfcomp.report.verbalize import name_runs
from tfcomp.statistics.limits import REAL
from tfcomp.statistics.seed_statistics import summarize
from tfcomp.sweeps.sweep_run import define_flags, make_sweep
from tfcomp.tables.flatten import NO_FLAGS

SOURCE = """
from tfcomp.config.settings import declare_setting
declare_setting("petals", 5, "Petals of a flower.", minimum=1)
declare_setting("scent", "rose", "Its scent.", choices=("rose", "none"))
declare_setting("wild", False, "It grows by itself.")
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(settings, "_DECLARED", {})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "flowers.py").write_text(SOURCE)
    monkeypatch.delitem(sys.modules, "flowers", raising=False)
    return "flowers"


def test_settings_become_flags_and_identity(plugin: str) -> None:
    config = run_flags.parse_config([f"--plugins={plugin}", "--petals=7"])
    assert config.own == {"petals": 7, "scent": "rose", "wild": False}
    flags = ["--wild", f"--plugins={plugin}", "--petals", "7"]
    assert run_flags.parse_config(flags).own == config.own | {"wild": True}
    assert config.identity()["petals"] == 7
    assert "--petals=7\n" in run_flags.format_flags(config)
    assert make_config(config.to_flags()) == config
    assert not run_flags.parse_config([]).own
    declare_setting("leaves", 2, "Declared in a notebook.")
    assert run_flags.parse_config(["--leaves=3"]).own == {"leaves": 3}


def test_grid_over_an_own_setting(plugin: str) -> None:
    arguments = [f"--plugins={plugin}", "--grid=petals=3,4", "--seeds=1"]
    sweep = make_sweep(run_flags.parse_flags(arguments, define_flags()))
    assert [t.config.own["petals"] for t in sweep.items] == [3, 4]
    assert len({trial.name for trial in sweep.items}) == 2


def test_they_tell_runs_from_runs_without_a_plugin(plugin: str) -> None:
    flags = [f"--plugins={plugin} --petals={n} --seed={n}" for n in (5, 6)]
    configs = [
        run_flags.parse_config([*f.split(), f"--run_name={place:016x}"])
        for place, f in enumerate(("", *flags))
    ]
    flower = f"plugins {plugin}, petals"
    names = ["plugins , petals -", f"{flower} 5", f"{flower} 6"]
    for order in (configs, configs[::-1]):
        labels = [setting for _, setting in name_runs(order)]
        assert sorted(labels) == names


def test_rules(plugin: str) -> None:
    for flag, rule in (("petals=0", "at least 1"), ("petals=x", "integer")):
        with pytest.raises(ConfigError, match=rule):
            run_flags.parse_config([f"--plugins={plugin}", f"--{flag}"])


def test_a_record_imports_nothing(plugin: str, tmp_path: Path) -> None:
    config = run_flags.parse_config([f"--plugins={plugin}", "--petals=7"])
    path = tmp_path / "run.flags"
    path.write_text(run_flags.format_flags(config))
    assert (
        make_config(run_flags.parse_record(path.read_text().splitlines()))
        == config
    )
    del sys.modules[plugin]
    settings._DECLARED.clear()
    flags = run_flags.parse_record(path.read_text().splitlines())
    assert flags["petals"] == "7"
    assert plugin not in sys.modules
    with pytest.raises(RunError, match="has --plugins=.*command line"):
        run_flags.parse_flags([f"--flagfile={path}"], define_flags())
    with pytest.raises(RunError, match=f"--plugins={plugin}.*import it first"):
        admit_plugins(path, plugin)


@pytest.mark.parametrize(
    ("name", "default", "rules", "problem"),
    [
        ("petals", 6, {}, "declared already"),
        ("two words", 1, {}, "Python variable"),
        ("lowest", 1, {"minimum": 2}, "at least 2"),
        ("value", 1, {}, "as no column of tables"),
    ],
)
def test_impossible_declarations(
    plugin: str, name: str, default: int, rules: dict, problem: str
) -> None:
    declare_setting("petals", 5, "Petals.")
    declare_setting("petals", 5, "Petals.")  # imported again
    with pytest.raises(ValueError, match=problem):
        declare_setting(name, default, "Help.", **rules)


def test_no_setting_is_named_as_a_column() -> None:
    """Else sweeps end in errors, and `compare` averages two values of it."""
    frame = pd.DataFrame({"a": [1], "score": [1], "value": [1], "seed": [0]})
    summary = summarize(frame, ["a", "score"], lambda _: REAL)
    columns = {*summary, *(NO_FLAGS - {*RunConfig().to_flags()})} - {"a"}
    assert columns <= {*settings.COLUMNS}


def test_name_of_another_flag(plugin: str, tmp_path: Path) -> None:
    (tmp_path / "flowers.py").write_text(SOURCE.replace("petals", "seed"))
    with pytest.raises(RunError, match="--seed is a flag already"):
        run_flags.parse_config([f"--plugins={plugin}"])


def test_help_lists_them(
    plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(["train", f"--plugins={plugin}", "--help"]) == 0
    assert "--petals=5" in capsys.readouterr().out
