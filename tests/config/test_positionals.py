"""Positional arguments: flagfiles and runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp import __main__ as tfcomp
from tfcomp import __version__
from tfcomp.config.command import format_help
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import expand_positionals
from tfcomp.config.run_flags import define_run_flags, make_flags, parse_flags

RUNS = {"run": ("", "Runs."), "again": (False, "Again.")}


def place(*arguments: str) -> list[str]:
    return expand_positionals(arguments, define_run_flags())


@pytest.mark.parametrize(
    "arguments",
    [
        ("smoke", "--depth=3"),
        ("--depth=3", "smoke"),
        ("--depth", "3", "smoke"),
        ("--resume", "smoke", "--depth=3", "--noresume"),
        ("smoke", "-depth", "3"),
    ],
)
def test_flags_override_a_flagfile_wherever_it_stands(
    arguments: tuple[str, ...],
) -> None:
    values = define_run_flags()
    settings = parse_flags(expand_positionals(arguments, values), values)
    assert (settings["run_name"], settings["depth"]) == ("smoke", 3)
    assert settings["resume"] is False


def test_later_flagfiles_override_earlier_ones() -> None:
    assert place("donut", "mine") == ["--flagfile=donut", "--flagfile=mine"]
    assert place("--flagfile", "donut") == ["--flagfile=donut"]


def test_runs_are_the_value_of_their_flag() -> None:
    values = make_flags(RUNS)
    placed = expand_positionals(["logs/a", "--again", "logs/b*"], values)
    assert placed == ["--again", "--run=logs/a,logs/b*"]
    with pytest.raises(RunError, match="--run says it"):
        expand_positionals(["--run=logs/b", "logs/a"], values)


def test_a_word_that_looks_like_a_flag() -> None:
    with pytest.raises(RunError, match="did you mean --depth=3"):
        place("smoke", "depth=3")
    assert place("my=file") == ["--flagfile=my=file"]


def test_a_command_without_words() -> None:
    table = make_flags({"again": (False, "Again.")})
    with pytest.raises(RunError, match="flags start with --"):
        expand_positionals(["--again", "x"], table)


def test_version_and_help(capsys: pytest.CaptureFixture) -> None:
    assert tfcomp.main(["tfcomp", "--version"]) == 0
    assert capsys.readouterr().out == f"tfcomp {__version__}\n"
    assert tfcomp.main(["tfcomp", "help", "train"]) == 0
    helped = capsys.readouterr().out
    assert tfcomp.main(["tfcomp", "train", "--help"]) == 0
    assert capsys.readouterr().out == helped


def test_help_has_every_flag_once() -> None:
    values = make_flags({"grid": ([], "Axes.")}, define_run_flags())
    lines = format_help("Does.", values).splitlines()
    flags = [line[4:].partition("=")[0] for line in lines if line[:4] == "  --"]
    assert sorted(flags) == sorted([*values, "flagfile"])
    titles = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert [title.split()[0].rstrip(":") for title in titles] == (
        "Flags Data Model Training Output".split()
    )


def test_an_installed_command_finds_plugins_in_the_current_folder(
    tmp_path: Path,
) -> None:
    """The script of a package does not have the folder on its path."""
    (tmp_path / "my_parts.py").write_text(
        "from tfcomp.config.own_settings import declare_setting\n"
        "declare_setting('hidden', 64, 'Units.', minimum=0)\n"
    )
    command = Path(sys.executable).with_name("tfcomp")
    if not command.exists():
        pytest.skip("the command is not installed")
    paths = os.environ | {"PYTHONPATH": ""}
    result = subprocess.run(
        [command, "train", "--plugins=my_parts", "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=paths,
    )
    assert "--hidden=64" in result.stdout, result.stderr
