"""Flagfiles and words of a command line."""

import re
from pathlib import Path

import pytest

from tfcomp.config import flagfiles
from tfcomp.config.command import format_help
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import SHIPPED, list_flagfiles
from tfcomp.config.run_flags import (
    define_run_flags,
    make_flags,
    parse_config,
    parse_flags,
)
from tfcomp.models.registry import check_config


def write_flags(folder: Path, name: str, *lines: str) -> str:
    """Writes a flagfile; returns the flag that names it."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return f"--flagfile={path}"


def find_depth(*arguments: str) -> int:
    return parse_config(arguments).model.depth


def test_later_flags_win(tmp_path: Path) -> None:
    flag = write_flags(tmp_path, "a.flags", "--depth=3", "--depth=5")
    assert find_depth("--depth=2", "--depth=3") == 3
    assert find_depth(flag) == 5
    assert find_depth(flag, "--depth=2") == 2
    assert find_depth("--depth=2", *flag.split("=")) == 5


def test_nested_flagfiles_are_expanded_in_place(tmp_path: Path) -> None:
    lines = ("# a", "", "  // b", "  --depth=3  ", "--width=8", "#--depth=4")
    write_flags(tmp_path, "inner.flags", *lines)
    line = "--flagfile=inner.flags"
    flag = write_flags(tmp_path, "o.flags", line, "--depth=2", line)
    found = flagfiles.expand_flagfiles([flag, "--seed=1"])
    inner = ["--depth=3", "--width=8"]
    assert found == [*inner, "--depth=2", *inner, "--seed=1"]


def test_lookup_order(working_folder: Path) -> None:
    beside = working_folder / "beside"
    outer = write_flags(beside, "outer.flags", "--flagfile=donut.flags")
    assert find_depth(outer) == find_depth("--flagfile=donut.flags") == 4
    write_flags(beside, "donut.flags", "--depth=5")
    assert find_depth(outer) == 5
    write_flags(working_folder, "donut.flags", "--depth=6")
    assert find_depth("--flagfile=donut.flags") == 6
    assert find_depth(outer) == 5
    # A shipped file means those that it was shipped with.
    write_flags(working_folder, "donut.flags", "--nopictures")
    assert parse_config(["--flagfile=smoke"]).pictures


def test_ending_may_be_left_out(working_folder: Path) -> None:
    assert parse_config(["--flagfile=ramp"]).run_name == "ramp"
    write_flags(working_folder, "ramp.flags", "--run_name=mine")
    assert parse_config(["--flagfile=ramp"]).run_name == "mine"
    with pytest.raises(RunError, match="did you mean donut"):
        parse_config(["--flagfile=donout"])
    write_flags(working_folder, "ramp", "--run_name=exact")
    assert parse_config(["--flagfile=ramp"]).run_name == "exact"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.flags", "--flagfile includes itself: 'a.flags'"),
        ("../x/a.flags", "--flagfile includes itself"),
        ("b.flags", "--flagfile includes itself: 'a.flags'"),
        # The message lists the shipped ones.
        ("no_such_file_of_anyone", "donut.flags.*'no_such_file_of_anyone'"),
    ],
)
def test_bad_flagfile_in_a_flagfile(
    name: str, message: str, tmp_path: Path
) -> None:
    flag = write_flags(tmp_path / "x", "a.flags", f"--flagfile={name}")
    write_flags(tmp_path / "x", "b.flags", "--flagfile=a.flags")
    with pytest.raises(RunError, match=message):
        parse_config([flag])


def test_flagfile_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.flags"
    path.write_bytes(b"\xef\xbb\xbf# of Windows\r\n--depth=5\r\n")
    assert find_depth(f"--flagfile={path}") == 5
    path.write_bytes(b"--depth=\xff\xfe")
    with pytest.raises(RunError, match="must be readable text"):
        parse_config([f"--flagfile={path}"])


# Shipped flagfiles


def test_shipped_flagfiles_describe_runs_that_can_start() -> None:
    names = list_flagfiles(define_run_flags())
    assert "donut.flags" in names and "sweep_depth.flags" not in names
    for name in names:
        config = parse_config([f"--flagfile={name}"])
        check_config(config)
        assert config.run_name == name.removesuffix(".flags")


@pytest.mark.parametrize("name", list_flagfiles())
def test_shipped_flagfile_begins_with_its_command(name: str) -> None:
    text = (SHIPPED / name).read_text(encoding="utf-8")
    stem = re.escape(name.removesuffix(".flags"))
    pattern = rf"^#   tfcomp (study|\w+)(?: \w+)? {stem}\b"
    command = re.search(pattern, text.partition("\n--")[0], re.MULTILINE)[1]
    assert (SHIPPED.parent / f"{command}.py").exists()


# Positional arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ("--depth=3", "smoke"),
        ("--depth", "3", "smoke"),
        ("--resume", "smoke", "--depth=3", "--noresume"),
    ],
)
def test_flags_override_a_flagfile_wherever_it_stands(
    arguments: tuple[str, ...],
) -> None:
    settings = parse_flags(arguments, define_run_flags())
    assert (settings["run_name"], settings["depth"]) == ("smoke", 3)
    assert settings["resume"] is False


def test_runs_are_the_value_of_their_flag() -> None:
    table = {"run": ("", "Runs."), "again": (False, "Again.")}
    settings = parse_flags(["logs/a", "--again", "logs/b*"], make_flags(table))
    assert settings == {"run": "logs/a,logs/b*", "again": True}
    with pytest.raises(RunError, match="--run says it"):
        parse_flags(["--run=logs/b", "logs/a"], make_flags(table))


def test_a_word_that_looks_like_a_flag() -> None:
    values = define_run_flags()
    with pytest.raises(RunError, match="did you mean --depth=3"):
        parse_flags(["smoke", "depth=3"], values)
    with pytest.raises(RunError, match="--flagfile must be .* got 'my=file'"):
        parse_flags(["my=file"], values)
    table = make_flags({"again": (False, "Again.")})
    with pytest.raises(RunError, match="flags start with --"):
        parse_flags(["--again", "x"], table)


def test_help_has_every_flag_once() -> None:
    values = make_flags({"grid": ([], "Axes.")}, define_run_flags())
    lines = format_help("Does.", values).splitlines()
    flags = [line[4:].partition("=")[0] for line in lines if line[:4] == "  --"]
    assert sorted(flags) == sorted([*values, "flagfile"])
    titles = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert titles == ["Flags:", "Data:", "Model:", "Training:", "Output:"]
