"""Flagfiles: lookup, nesting, and those that are shipped."""

import re
from pathlib import Path

import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import SHIPPED, expand_flagfiles, list_flagfiles
from tfcomp.config.run_flags import define_run_flags, parse_config
from tfcomp.models.config_checks import check_config

RUN_FLAGFILES = list_flagfiles(define_run_flags())


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
    assert find_depth("--depth=2", flag) == 5


@pytest.mark.parametrize(
    "form", ["--flagfile={}", "-flagfile={}", "--flagfile {}"]
)
def test_spellings_of_flagfile(form: str, tmp_path: Path) -> None:
    write_flags(tmp_path, "a.flags", "--depth=3")
    arguments = form.format(tmp_path / "a.flags").split()
    assert find_depth(*arguments, "--width=8") == 3


def test_comments_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    lines = ("# a", "", "  // b", "  --depth=3  ", "#--depth=4")
    flag = write_flags(tmp_path, "a.flags", *lines)
    assert expand_flagfiles([flag]) == ["--depth=3"]


def test_nested_flagfiles_are_expanded_in_place(tmp_path: Path) -> None:
    write_flags(tmp_path, "inner.flags", "--depth=3", "--width=8")
    line = "--flagfile=inner.flags"
    flag = write_flags(tmp_path, "o.flags", line, "--depth=2", line)
    found = expand_flagfiles([flag, "--seed=1"])
    inner = ["--depth=3", "--width=8"]
    assert found == [*inner, "--depth=2", *inner, "--seed=1"]


def test_lookup_order(working_folder: Path) -> None:
    beside = working_folder / "beside"
    outer = write_flags(beside, "outer.flags", "--flagfile=donut.flags")
    assert find_depth(outer) == find_depth("--flagfile=donut.flags") == 4
    write_flags(beside, "donut.flags", "--depth=5")
    assert find_depth(outer) == 5
    write_flags(working_folder, "donut.flags", "--depth=6")
    assert find_depth(outer) == find_depth("--flagfile=donut.flags") == 6


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
        ("./a.flags", "--flagfile includes itself"),
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
    path.write_bytes(b"--depth=\xff\xfe")
    with pytest.raises(RunError, match="must be readable text"):
        parse_config([f"--flagfile={path}"])


# Shipped flagfiles


def test_a_command_lists_the_flagfiles_that_it_can_read() -> None:
    assert list_flagfiles() == sorted(p.name for p in SHIPPED.glob("*.flags"))
    assert {"donut.flags", "sweep_depth.flags"} <= set(list_flagfiles())
    assert "donut.flags" in RUN_FLAGFILES
    assert "sweep_depth.flags" not in RUN_FLAGFILES


@pytest.mark.parametrize("name", RUN_FLAGFILES)
def test_shipped_flagfile_describes_a_run_that_can_start(name: str) -> None:
    config = parse_config([f"--flagfile={name}"])
    check_config(config)
    assert config.run_name == name.removesuffix(".flags")


@pytest.mark.parametrize("name", list_flagfiles())
def test_shipped_flagfile_begins_with_its_command(name: str) -> None:
    text = (SHIPPED / name).read_text(encoding="utf-8")
    comment = text.partition("\n--")[0]
    stem = re.escape(name.removesuffix(".flags"))
    pattern = rf"^#   tfcomp (study|\w+)(?: \w+)? {stem}\b"
    command = re.search(pattern, comment, re.MULTILINE)[1]
    assert (SHIPPED.parent / f"{command}.py").exists()
    lines = comment.splitlines()
    assert len(lines) > 2
    assert all(line.startswith("#") for line in lines)
    assert max(map(len, lines)) <= 80
