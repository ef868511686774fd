"""Flags and flagfiles; user mistakes end in one line, without TensorFlow."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import SHIPPED
from tfcomp.config.flagfiles import expand_flagfiles
from tfcomp.config.flagfiles import list_flagfiles
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_config import all_fields
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.config.run_flags import format_flags
from tfcomp.config.run_flags import parse_config
from tfcomp.train import check_config

RUN_FLAGFILES = list_flagfiles(define_run_flags())
HEAVY = ("tensorflow", "keras", "tensorflow_datasets", "matplotlib")

DIGITS = ["--dataset=rotated_digits", "--encoding=circle"]
ROTATED = [*DIGITS, "--region=gap:angle:160-200", "--model=rotation"]
BAD_FLAGS = {
    "unknown": ["--dept=3"],
    "ill-formed integer": ["--epochs=1e3"],
    "ill-formed number": ["--sigma=wide"],
    "ill-formed boolean": ["--resume=maybe"],
    "not finite": ["--learning_rate=nan"],
    "no value": ["--depth"],
    "empty value": ["--depth="],
    "positional": ["donut.flags"],
    "empty argument": [""],
    "choice": ["--polarity=grey"],
    "minimum": ["--epochs=0"],
    "run name": ["--run_name=a/b"],
    "two lines": ["--log_dir=a\nb"],
    "missing flagfile": ["--flagfile=missing.flags"],
    "flagfile of a folder": ["--flagfile=/"],
    "flagfile without a name": ["--flagfile"],
    "flagfile with a long name": ["--flagfile=" + "a" * 5000],
    "region kind": ["--region=circle:3"],
    "region bounds": ["--region=square:6"],
    "region outside": ["--region=square:6-99"],
    "region of everything": ["--region=square:0-27"],
    "region of nothing": ["--region=square:6.2-6.8"],
    "region with a line break": ["--region=square:\n6"],
    "too many examples": ["--num_train=496"],
    "bumps among bumps": ["--num_bumps=3"],
    "dataset": ["--dataset=faces"],
    "encoding": ["--encoding=grey"],
    "model": ["--model=transformer"],
    "grid of the cnn": ["--grid_size=30"],
    "depth of the cnn": ["--depth=1"],
    "replicas": ["--num_replicas=3"],
    "plugin": ["--plugins=no_such_module_of_anyone"],
    "digit": ["--digit_class=10", *ROTATED],
    "digits": ["--digit_classes=0,x", *ROTATED],
    "digits twice": ["--digit_classes=4,4", *ROTATED],
    "one of several digits": ["--digit_classes=4", *ROTATED],
    "gap of the whole circle": ["--region=gap:angle:0-360", *DIGITS],
    "gap without a factor": ["--region=gap:digit:4-4", *DIGITS],
    "too many angles": ["--num_train=889", *ROTATED],
    "digits of another size": ["--grid_size=32", *ROTATED],
    "second stand-in": [
        "--digit_index=1",
        "--digit_source=stand_in",
        *ROTATED,
    ],
    "clipping": ["--clip_norm=-1"],
}

CALL_MAIN = """
import contextlib, io, json, os, sys
from tfcomp.config.command import exit_on_user_error
from tfcomp.train import main

answers = []
for flags in json.loads(sys.stdin.read()):
    sys.argv = ["train", *flags]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            exit_on_user_error(main)
        except SystemExit as end:
            answers.append((end.code, errors.getvalue()))
heavy = [name for name in sys.argv_heavy if name in sys.modules]
print(json.dumps([answers, heavy, os.listdir()]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple]:
    """Exit status and standard error of every bad command line."""
    script = CALL_MAIN.replace("sys.argv_heavy", repr(HEAVY))
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        input=json.dumps(list(BAD_FLAGS.values())),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("bad_flags"),
    )
    assert result.returncode == 0, result.stderr
    found, heavy, files = json.loads(result.stdout)
    assert heavy == []
    assert files == []
    return dict(zip(BAD_FLAGS, found, strict=True))


def write_flags(folder: Path, name: str, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def run_train(folder: Path, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "tfcomp.train", *flags],
        capture_output=True,
        text=True,
        cwd=folder,
    )


def make_unusual_config() -> RunConfig:
    """No setting but `resume` has its default value."""
    numbers = {int: lambda v: v + 4, float: lambda v: v / 3 + 0.1}
    flat = {}
    for item in all_fields():
        kind, choices = type(item.default), item.metadata["choices"]
        if item.name == "resume":
            continue
        if choices:
            flat[item.name] = [c for c in choices if c != item.default][-1]
        elif kind is str:
            flat[item.name] = f"a b=c --d #e 'ü' {item.name}"
        elif kind is bool:
            flat[item.name] = not item.default
        else:
            flat[item.name] = numbers[kind](item.default)
    return make_config(flat)


# Round trip


def test_format_is_inverted_by_parse() -> None:
    config = make_unusual_config()
    default = RunConfig().to_flags()
    same = [k for k, v in config.to_flags().items() if v == default[k]]
    assert same == ["resume"]
    assert parse_config(format_flags(config).splitlines()) == config


def test_format_is_inverted_by_a_flagfile(tmp_path: Path) -> None:
    config = make_unusual_config()
    path = tmp_path / "run.flags"
    path.write_text(format_flags(config), encoding="utf-8")
    assert parse_config([f"--flagfile={path}"]) == config


def test_format_has_every_flag_on_a_line_of_its_own() -> None:
    lines = format_flags(RunConfig()).splitlines()
    names = [line.partition("=")[0] for line in lines]
    assert names == [f"--{item.name}" for item in all_fields()]


def test_repeating_a_resumed_run_does_not_resume() -> None:
    config = dataclasses.replace(RunConfig(), resume=True)
    assert parse_config(format_flags(config).splitlines()) == RunConfig()


def test_no_flags_give_the_defaults() -> None:
    assert parse_config([]) == RunConfig()


# Order of flags and flagfiles


def test_later_flags_win(tmp_path: Path) -> None:
    path = write_flags(tmp_path, "a.flags", "--depth=3", "--depth=5")
    flag = f"--flagfile={path}"
    assert parse_config(["--depth=2", "--depth=3"]).model.depth == 3
    assert parse_config([flag]).model.depth == 5
    assert parse_config([flag, "--depth=2"]).model.depth == 2
    assert parse_config(["--depth=2", flag]).model.depth == 5


@pytest.mark.parametrize(
    "form",
    [["--flagfile={}"], ["-flagfile={}"], ["--flagfile", "{}"]],
)
def test_spellings_of_flagfile(form: list[str], tmp_path: Path) -> None:
    path = write_flags(tmp_path, "a.flags", "--depth=3")
    arguments = [part.format(path) for part in form]
    assert parse_config([*arguments, "--width=8"]).model.depth == 3


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("--resume", True), ("--noresume", False), ("--resume=true", True)],
)
def test_spellings_of_a_boolean(flag: str, expected: bool) -> None:
    assert parse_config([flag]).resume is expected


def test_comments_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write_flags(
        tmp_path, "a.flags", "# a", "", "  // b", "  --depth=3  ", "#--depth=4"
    )
    assert expand_flagfiles([f"--flagfile={path}"]) == ["--depth=3"]


def test_nested_flagfile_is_expanded_in_place(tmp_path: Path) -> None:
    write_flags(tmp_path, "inner.flags", "--depth=3", "--width=8")
    outer = write_flags(
        tmp_path,
        "outer.flags",
        "--depth=2",
        "--flagfile=inner.flags",
        "--width=16",
    )
    assert expand_flagfiles([f"--flagfile={outer}", "--seed=1"]) == [
        "--depth=2",
        "--depth=3",
        "--width=8",
        "--width=16",
        "--seed=1",
    ]


def test_one_file_may_be_included_twice(tmp_path: Path) -> None:
    write_flags(tmp_path, "inner.flags", "--depth=3")
    line = "--flagfile=inner.flags"
    outer = write_flags(tmp_path, "outer.flags", line, "--depth=2", line)
    assert parse_config([f"--flagfile={outer}"]).model.depth == 3


# Where flagfiles are looked up


def test_lookup_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    here.mkdir()
    monkeypatch.chdir(here)
    outer = write_flags(beside, "outer.flags", "--flagfile=donut.flags")

    def depth() -> int:
        return parse_config([f"--flagfile={outer}"]).model.depth

    assert depth() == 4  # shipped
    write_flags(beside, "donut.flags", "--depth=5")
    assert depth() == 5
    write_flags(here, "donut.flags", "--depth=6")
    assert depth() == 6


def test_bare_name_is_looked_up_in_the_working_directory_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_config(["--flagfile=ramp.flags"]).run_name == "ramp"
    write_flags(tmp_path, "ramp.flags", "--run_name=mine")
    assert parse_config(["--flagfile=ramp.flags"]).run_name == "mine"


@pytest.mark.parametrize("name", ["a.flags", "./a.flags", "../x/a.flags"])
def test_file_that_includes_itself(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_flags(tmp_path / "x", "a.flags", f"--flagfile={name}")
    monkeypatch.chdir(tmp_path / "x")
    with pytest.raises(RunError, match="--flagfile includes itself"):
        parse_config([f"--flagfile={path}"])


def test_cycle_of_two_files(tmp_path: Path) -> None:
    path = write_flags(tmp_path, "a.flags", "--flagfile=b.flags")
    write_flags(tmp_path, "b.flags", "--flagfile=a.flags")
    with pytest.raises(RunError, match="includes itself: 'a.flags'"):
        parse_config([f"--flagfile={path}"])


def test_missing_flagfile_lists_the_shipped_ones(tmp_path: Path) -> None:
    path = write_flags(tmp_path, "a.flags", "--flagfile=missing.flags")
    with pytest.raises(RunError, match="donut.flags.*'missing.flags'"):
        parse_config([f"--flagfile={path}"])


def test_flagfile_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.flags"
    path.write_bytes(b"--depth=\xff\xfe")
    with pytest.raises(RunError, match="must be readable text"):
        parse_config([f"--flagfile={path}"])


# Mistakes and help


@pytest.mark.parametrize("case", BAD_FLAGS)
def test_bad_flag_is_one_line(case: str, answers: dict[str, tuple]) -> None:
    status, text = answers[case]
    assert status == 2
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert text.endswith("\n")
    name = re.match(r"--?(\w+)", BAD_FLAGS[case][0])
    if name is not None:
        assert f"--{name[1]}" in text


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("unknown", "--dept is not a flag, did you mean --depth?"),
        ("ill-formed integer", "--epochs must be an integer, got '1e3'"),
        ("ill-formed number", "--sigma must be a number, got 'wide'"),
        (
            "ill-formed boolean",
            "--resume must be true or false, got 'maybe'",
        ),
        ("minimum", "--epochs must be at least 1, got 0"),
        ("too many examples", "--num_train must be at most the 495 ID cells"),
        ("replicas", "--batch_size must be a multiple of --num_replicas=3"),
        ("plugin", "'no_such_module_of_anyone'"),
    ],
)
def test_wording(case: str, expected: str, answers: dict[str, tuple]) -> None:
    assert expected in answers[case][1]


@pytest.mark.parametrize(
    "flags", [["--depht=3"], ["--flagfile=donut.flags", "--region=square:9"]]
)
def test_bad_flag_of_the_command(flags: list[str], tmp_path: Path) -> None:
    result = run_train(tmp_path, *flags)
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.fullmatch(r"error: --.*, got .*\n|error: --.*\n", result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_help_of_the_command(tmp_path: Path) -> None:
    result = run_train(tmp_path, "--flagfile=donut.flags", "--help")
    assert result.returncode == 0
    assert result.stderr == ""
    for item in all_fields():
        assert f"--{item.name}=" in result.stdout
        assert item.metadata["help"] in result.stdout
    for name in ("--flagfile=", *RUN_FLAGFILES):
        assert name in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_help_does_not_import_tensorflow(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from tfcomp.train import main\n"
        "status = main(['train', '--help'])\n"
        f"heavy = [n for n in {HEAVY} if n in sys.modules]\n"
        "sys.exit(status or heavy or 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (result.returncode, result.stderr) == (0, "")


# Shipped flagfiles


def find_command(name: str) -> str:
    """The command of tfcomp that a flagfile is for: the first it names."""
    text = (SHIPPED / name).read_text(encoding="utf-8")
    pattern = rf"^#   python -m tfcomp\.(\w+) --flagfile={re.escape(name)}\b"
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def test_all_shipped_flagfiles_are_listed() -> None:
    assert "donut.flags" in list_flagfiles()
    assert list_flagfiles() == sorted(p.name for p in SHIPPED.iterdir())


def test_flagfiles_of_other_commands_are_left_out() -> None:
    assert "donut.flags" in RUN_FLAGFILES
    assert "sweep_depth.flags" in list_flagfiles()
    assert "sweep_depth.flags" not in RUN_FLAGFILES


@pytest.mark.parametrize("name", RUN_FLAGFILES)
def test_shipped_flagfile_describes_a_run_that_can_start(name: str) -> None:
    config = parse_config([f"--flagfile={name}"])
    check_config(config)
    assert config.run_name == name.removesuffix(".flags")


@pytest.mark.parametrize("name", list_flagfiles())
def test_shipped_flagfile_begins_with_its_command(name: str) -> None:
    lines = (SHIPPED / name).read_text(encoding="utf-8").splitlines()
    flags = [i for i, line in enumerate(lines) if line.startswith("--")]
    comment = lines[: flags[0]]
    assert len(comment) > 2
    assert all(line.startswith("#") for line in comment)
    command = f"#   python -m tfcomp.{find_command(name)} --flagfile={name}"
    assert any(line.startswith(command) for line in comment)
    assert (SHIPPED.parent / f"{find_command(name)}.py").exists()
    assert max(map(len, comment)) <= 80


def test_error_carries_its_parts() -> None:
    error = ConfigError("depth", "must be odd", 4)
    assert (error.name, error.rule, error.value) == ("depth", "must be odd", 4)
    assert str(error) == "--depth must be odd, got 4"
