"""Flags and flagfiles <-> configurations; mistakes end in one line."""

import dataclasses
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp.config import run_config
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import DataConfig, RunConfig, make_config
from tfcomp.config.run_flags import (
    SHIPPED,
    define_run_flags,
    expand_flagfiles,
    format_flags,
    list_flagfiles,
    make_flags,
    parse_config,
    parse_flags,
    parse_record,
)
from tfcomp.models.registry import make_checked_dataset


def test_identity_leaves_out_the_location():
    config = RunConfig()
    moved = RunConfig(run_name="b", log_dir="c", export_dir="d", resume=True)
    assert moved.identity() == config.identity()
    left_out = set(config.to_flags()) - set(config.identity())
    assert left_out == set(run_config.LOCATION_FLAGS)
    other = RunConfig(data=DataConfig(grid_size=32))
    assert other.identity() != config.identity()


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "a\\b", "a\0b", "a\nb", " a"]
)
def test_run_name_is_a_plain_name(name: str):
    with pytest.raises(ConfigError, match="--run_name") as caught:
        RunConfig(run_name=name)
    assert "\n" not in str(caught.value)


HEAVY = ("tensorflow", "keras", "tensorflow_datasets", "matplotlib", "pandas")
DIGITS = "--dataset=rotated_digits --encoding=circle"
ROTATED = f"{DIGITS} --region=gap:angle:160-200 --model=rotation"
# Arguments of a training, as in a shell, and what the error must say.
BAD_FLAGS = {
    "--undefok=dpeth --dpeth=3": "--undefok is not a flag",
    f"--{'9' * 1200}=3": "9 is not a flag",
    "--dept=3": "did you mean --depth?",
    "--epochs=1e3": "--epochs must be an integer, got '1e3'",
    "--learning_rate=nan": "--learning_rate must be a finite number",
    "--depth=": "--depth must be an integer, got ''",
    "--log_dir=~ --run_name=.bashrc.d": "--run_name must be a plain name",
    "--log_dir='a\nb'": "--log_dir must be text without control",
    "--flagfile=missing.flags": "--flagfile must be an existing file",
    "donout": "did you mean donut?",
    "my=file": "--flagfile must be an existing file",
    "--flagfile=" + "a" * 5000: "--flagfile must be an existing file",
    "--region=circle:3": "--region must be one of",
    "--region=square:6-99": "--region must lie in the range of x, 0 to 27",
    "--region=square:6.2-6.8": "--region must hold out at least one",
    "--num_train=496": "--num_train must be at most the 495 ID cells",
    "--num_bumps=3": "--num_bumps must be 0 for the dataset gaussian_bumps",
    "--grid_size=30": "--grid_size must be a multiple of 4 for the model cnn",
    "--depth=1": "--depth must be at least 2 for the model cnn",
    "--num_replicas=3": "--batch_size must be a multiple of --num_replicas=3",
    "--plugins=no_such_module_of_anyone": "'no_such_module_of_anyone'",
    f"--digit_class=10 {ROTATED}": "--digit_class must be at most 9",
    f"--digit_classes=0,x {ROTATED}": "--digit_classes must be at least two",
    f"--region=gap:digit:4-4 {DIGITS}": "--region must name factors among",
    "--epochs=" + "9" * 5000: "--epochs must be an integer, got '999",
    "--width=60000 --model=mlp": "--width must be smaller: the weights take",
    "--grid_size=700 --eval_points=490000": "--grid_size must be smaller:",
    "--export_dir=/dev/null": "--export_dir must name a folder that can be",
    "--export_dir='\udcff'": "--export_dir must be text without control",
    f"--digit_index=1 --digit_source=stand_in {ROTATED}": "--digit_index must",
    "donut --materialize": "--examples_dir must name a folder",
}

CALL_MAIN = f"""
import contextlib, io, json, os, sys
from tfcomp.config.process import exit_on_user_error
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
heavy = [name for name in {HEAVY} if name in sys.modules]
print(json.dumps([answers, heavy, os.listdir()]))
"""


def test_bad_flags_are_one_line_each(working_folder: Path):
    result = subprocess.run(
        [sys.executable, "-c", CALL_MAIN],
        input=json.dumps([shlex.split(flags) for flags in BAD_FLAGS]),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    answers, heavy, files = json.loads(result.stdout.splitlines()[-1])
    assert heavy == []
    assert files == []
    pairs = zip(BAD_FLAGS.items(), answers, strict=True)
    for (flags, message), (status, text) in pairs:
        assert status == 2, flags
        assert text.startswith("error: ")
        assert message in text
        assert text.index("\n") == len(text) - 1


# Settings of which no value goes with all others.
USUAL = ["resume", "overwrite", "decay"]


def make_unusual_config() -> RunConfig:
    """Settings without their default values, where they go together."""
    settings: dict[str, object] = {}
    for field in run_config.all_fields():
        default = field.default
        choices = field.metadata["choices"]
        if choices:
            settings[field.name] = [c for c in choices if c != default][-1]
        elif isinstance(default, str):
            settings[field.name] = f"a b=c --d #e 'ü' {field.name}"
        elif isinstance(default, bool):
            settings[field.name] = not default
        elif isinstance(default, int):
            settings[field.name] = default + 4
        else:
            settings[field.name] = default / 3 + 0.1
    for name in USUAL:
        del settings[name]
    return make_config(settings)


def test_format_is_inverted_by_parse(tmp_path: Path):
    config = make_unusual_config()
    default = RunConfig().to_flags()
    same = [k for k, v in config.to_flags().items() if v == default[k]]
    assert same == USUAL
    path = tmp_path / "run.flags"
    path.write_text(format_flags(config), encoding="utf-8")
    assert make_config(parse_record(path.read_text().splitlines())) == config
    config = dataclasses.replace(config, plugins="")
    assert parse_config(format_flags(config).splitlines()) == config


@pytest.mark.parametrize("flag", ["resume", "overwrite"])
def test_repeating_a_resumed_run_does_not_resume(flag: str):
    config = dataclasses.replace(RunConfig(), **{flag: True})
    assert parse_config(format_flags(config).splitlines()) == RunConfig()
    assert parse_config([]) == RunConfig()


def test_home_of_a_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/of/mine")
    config = parse_config(["--log_dir=~/logs", "--run_name=~"])
    assert config.log_dir == "/home/of/mine/logs"
    assert config.run_name == "~"


# Flagfiles


def write_flags(folder: Path, name: str, *lines: str) -> str:
    """Writes a flagfile; returns the flag that names it."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return f"--flagfile={path}"


def find_depth(*arguments: str) -> int:
    return parse_config(arguments).model.depth


def test_later_flags_win(tmp_path: Path):
    flag = write_flags(tmp_path, "a.flags", "--depth=3", "--depth=5")
    assert find_depth("--depth=2", "--depth=3") == 3
    assert find_depth(flag) == 5
    assert find_depth(flag, "--depth=2") == 2
    assert find_depth("--depth=2", *flag.split("=")) == 5


def test_nested_flagfiles_are_expanded_in_place(tmp_path: Path):
    lines = ("# a", "", "  // b", "  --depth=3  ", "--width=8", "#--depth=4")
    write_flags(tmp_path, "inner.flags", *lines)
    line = "--flagfile=inner.flags"
    flag = write_flags(tmp_path, "o.flags", line, "--depth=2", line)
    inner = ["--depth=3", "--width=8"]
    expanded = expand_flagfiles([flag, "--seed=1"])
    assert expanded == [*inner, "--depth=2", *inner, "--seed=1"]


def test_lookup_order(working_folder: Path):
    beside = working_folder / "beside"
    outer = write_flags(beside, "outer.flags", "--flagfile=donut.flags")
    assert find_depth(outer) == find_depth("--flagfile=donut") == 4
    write_flags(beside, "donut.flags", "--depth=5")
    assert find_depth(outer) == 5
    write_flags(working_folder, "donut.flags", "--depth=6")
    assert find_depth("--flagfile=donut") == 6
    assert find_depth(outer) == 5
    write_flags(working_folder, "donut", "--depth=7")
    assert find_depth("--flagfile=donut") == 7
    # A shipped file means those that it was shipped with.
    write_flags(working_folder, "donut.flags", "--nopictures")
    assert parse_config(["--flagfile=smoke"]).pictures


@pytest.mark.parametrize(
    "name, message",
    [
        ("a.flags", "includes itself"),
        ("../x/a.flags", "includes itself"),
        ("b.flags", "includes itself"),
        # The message lists the shipped ones.
        ("no_such_file_of_anyone", "donut.flags.*'no_such_file_of_anyone'"),
        ("binary", "readable"),
    ],
)
def test_bad_flagfile_in_a_flagfile(name: str, message: str, tmp_path: Path):
    flag = write_flags(tmp_path / "x", "a.flags", f"--flagfile={name}")
    write_flags(tmp_path / "x", "b.flags", "--flagfile=a.flags")
    (tmp_path / "x/binary").write_bytes(b"--depth=\xff\xfe")
    with pytest.raises(RunError, match=message):
        parse_config([flag])


def test_flagfile_of_windows(tmp_path: Path):
    path = tmp_path / "a.flags"
    path.write_bytes(b"\xef\xbb\xbf# of Windows\r\n--depth=5\r\n")
    assert find_depth(f"--flagfile={path}") == 5


@pytest.mark.parametrize("name", list_flagfiles())
def test_shipped_flagfiles_describe_what_their_command_can_start(
    name: str,
):
    text = (SHIPPED / name).read_text(encoding="utf-8")
    stem = name.removesuffix(".flags")
    pattern = rf"^#   tfcomp (\w+) {re.escape(stem)}\b"
    command = re.search(pattern, text.partition("\n--")[0], re.MULTILINE)[1]
    assert (SHIPPED.parent / f"{command}.py").exists()
    if command == "train":
        config = parse_config([f"--flagfile={name}"])
        make_checked_dataset(config)
        assert config.run_name == stem


# Positional arguments


@pytest.mark.parametrize(
    "line",
    [
        "--depth=3 smoke",
        "--depth 3 smoke",
        "--resume smoke --depth=3 --noresume",
    ],
)
def test_flags_override_a_flagfile_wherever_it_stands(line: str):
    settings = parse_flags(line.split(), define_run_flags())
    assert settings["run_name"] == "smoke"
    assert settings["depth"] == 3
    assert settings["resume"] is False


def test_runs_are_the_value_of_their_flag():
    table = {"run": ("", "Runs."), "again": (False, "Again.")}
    settings = parse_flags(["logs/a", "--again", "logs/b*"], make_flags(table))
    assert settings == {"run": "logs/a,logs/b*", "again": True}
    with pytest.raises(RunError, match="--run says it"):
        parse_flags(["--run=logs/b", "logs/a"], make_flags(table))
    without = make_flags({"again": (False, "Again.")})
    with pytest.raises(RunError, match="flags start with --"):
        parse_flags(["--again", "x"], without)
