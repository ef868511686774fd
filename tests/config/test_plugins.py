"""Plugins that fail, and files of others that ask for code and more."""

import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tfcomp import analyze, train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import Registry, import_plugins
from tfcomp.config.run_flags import parse_flags
from tfcomp.sweeps.sweep_run import define_flags


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


# A plugin whose model has a name that another one has.
TAKEN = """
from tfcomp.models import MODELS
@MODELS.register('mlp')
def build(config, dataset): ...
"""


@pytest.mark.parametrize(
    "source, error, message",
    [
        ("import no_such_module", ConfigError, "No module.*'no_such_module'"),
        ("\n\n1 / 0", RunError, r"bad_part failed: .* division .*part.py:3\)$"),
        ("x = 1\ndef (", RunError, r"bad_part failed: .*bad_part.py:2\)$"),
        ("from os import nothing_like_it", RunError, "cannot import name"),
        (TAKEN, RunError, "model 'mlp' is registered already"),
    ],
)
def test_plugin_that_fails(
    source: str, error: type[Exception], message: str, plugins: Path
):
    (plugins / "bad_part.py").write_text(source)
    with pytest.raises(error, match=message):
        import_plugins("bad_part")


FOREIGN = "--plugins=evil_part"
ASKED = "--plugins=evil_part.*command line"


def write_run(folder: Path) -> Path:
    """A finished run of another person, as far as nothing is loaded."""
    folder.mkdir()
    (folder / "run.flags").write_text(f"--flagfile=smoke.flags\n{FOREIGN}")
    (folder / "metrics.json").write_text('{"id": {"mse": 1.0}}')
    (folder / "model.keras").write_bytes(b"")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "analyze --run={run}",
        "train --flagfile={run}/run.flags --resume",
        "train --flagfile=mine.flags",
        "train {run}/renamed.flags",
        "sweep --flagfile={run}/sweep.flags",
    ],
)
def test_plugins_of_a_run_are_not_imported(
    command: str, evil: Path, working_folder: Path
):
    tmp_path = working_folder
    run = write_run(tmp_path / "run")
    (run / "sweep.flags").write_text("--flagfile=inner.flags")
    (run / "split.flags").write_text("--flagfile=run.flags\n--epochs=1")
    for name in ("inner", "renamed"):
        (run / f"{name}.flags").write_text(FOREIGN)
    Path("mine.flags").write_text(f"--flagfile={run}/run.flags")
    name, *flags = command.format(run=run).split()
    before = sorted(tmp_path.rglob("*"))
    module = importlib.import_module(f"tfcomp.{name}")
    with pytest.raises(RunError, match=ASKED):
        module.main([name, *flags])
    assert not evil.exists()
    assert sorted(tmp_path.rglob("*")) == before


def test_measuring_leaves_foreign_plugins_alone(
    evil: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    run = write_run(tmp_path / "run")
    assert analyze.main(["analyze", str(run), "--measure"]) == 1
    assert re.search(ASKED, capsys.readouterr().err)
    assert not evil.exists()


def test_plugins_that_are_asked_for_are_imported(evil: Path, tmp_path: Path):
    run = write_run(tmp_path / "run")
    flags = [f"--flagfile={run}/run.flags", FOREIGN]
    with pytest.raises(ConfigError, match="--examples_dir"):
        train.main(["train", "--materialize", *flags])
    assert evil.exists()


SCHEDULER = "--scheduler=tcp://evil:8786"


def parse(*arguments: str) -> dict:
    return parse_flags(arguments, define_flags())


@pytest.mark.parametrize(
    "line",
    [
        SCHEDULER,
        "-scheduler=tcp://evil:8786",
        "--scheduler\n--plugins",
        "--flagfile=inner.txt",
    ],
)
def test_files_cannot_ask_for_it(line: str, working_folder: Path):
    Path("inner.txt").write_text(SCHEDULER)
    Path("renamed.txt").write_text(f"--depth=2\n{line}\n")
    with pytest.raises(RunError, match="command line|--flag=value"):
        parse("--flagfile=renamed.txt")


def test_the_command_line_decides(working_folder: Path):
    Path("a.flags").write_text(f"{SCHEDULER}\n--depth=2")
    mine = "--scheduler=tcp://mine:1"
    theirs = "--flagfile=a.flags"
    for arguments in ([mine, theirs], [theirs, mine]):
        values = parse(*arguments)
        assert values["scheduler"] == "tcp://mine:1"
        assert values["depth"] == 2
    # A record has them switched off.
    Path("run.flags").write_text("--plugins=\n--scheduler=\n--depth=3")
    assert parse("--flagfile=run.flags")["depth"] == 3


# Registries


@pytest.mark.parametrize("builder", [str, functools.partial(str, 7)])
def test_a_name_has_one_builder(builder: Callable):
    registry = Registry("shape")
    registry.register("b", int)
    registry.register("a", builder)
    registry.register("a", builder)
    with pytest.raises(ValueError, match="shape 'a' is registered already"):
        registry.register("a", int)
    assert registry.get("a").load() is builder
    with pytest.raises(ConfigError, match="--shape must be one of: a, b, got"):
        registry.get("c")


LAZY = """
import sys
from tfcomp.models.registry import MODELS

def count_contrib():
    return sum(name.startswith("tfcomp.contrib.") for name in sys.modules)

MODELS.get("cnn")
print(count_contrib())
MODELS.get("acting")
print(count_contrib() > 0)
print({"keras", "tensorflow", "torch"} & {*sys.modules})
"""


def test_plugins_of_tfcomp_are_imported_when_a_name_is_unknown():
    """And without TensorFlow."""
    result = subprocess.run(
        [sys.executable, "-c", LAZY], capture_output=True, text=True, check=True
    )
    assert result.stdout.split("\n") == ["0", "True", "set()", ""]
