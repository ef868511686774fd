"""Flags <-> configurations; mistakes end in one line, without TensorFlow."""

import dataclasses
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp.config import run_config
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import DataConfig, RunConfig, make_config
from tfcomp.config.run_flags import format_flags, parse_config, parse_record
from tfcomp.config.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class Ruled(Settings):
    """One setting for every rule."""

    size: int = setting(4, "Size.", minimum=2, maximum=8)
    count: int = setting(4, "Count.")
    scale: float = setting(1.0, "Scale.", above=0.0)
    kind: str = setting("a", "Kind.", choices=("a", "b"))
    again: bool = setting(False, "Again.")


def test_agreed_flags_and_defaults() -> None:
    flat = RunConfig().to_flags()
    agreed = (
        "run_name log_dir export_dir dataset region grid_size sigma polarity "
        "coordinates num_train num_bumps encoding model depth width rank "
        "entropy_weight variance_weight epochs batch_size learning_rate "
        "weight_decay seed precision num_replicas layerwise_every resume"
    )
    assert set(agreed.split()) <= set(flat)
    assert flat["log_dir"] == "tensorboard_logs"
    assert flat["export_dir"] == "saved_models"
    assert flat["entropy_weight"] == 0.1
    assert flat["variance_weight"] == 0.01


def test_identity_leaves_out_the_location() -> None:
    config = RunConfig()
    moved = RunConfig(run_name="b", log_dir="c", export_dir="d", resume=True)
    assert moved.identity() == config.identity()
    left_out = set(config.to_flags()) - set(config.identity())
    assert left_out == set(run_config.LOCATION_FLAGS)
    other = RunConfig(data=DataConfig(grid_size=32))
    assert other.identity() != config.identity()


@pytest.mark.parametrize(
    ("name", "value", "rule"),
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
def test_rules(name: str, value: object, rule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ruled(**{name: value})
    error = caught.value
    assert (error.name, error.rule, error.value) == (name, rule, value)
    assert str(error).startswith(f"--{name} {rule}, got {value!r}"[:200])
    assert len(str(error)) < 300


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "a\\b", "a\0b", "a\nb", " a"]
)
def test_run_name_is_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError, match="--run_name must be") as caught:
        RunConfig(run_name=name)
    assert "\n" not in str(caught.value)


HEAVY = ("tensorflow", "keras", "tensorflow_datasets", "matplotlib", "pandas")

# Not recorded, and not with plateau_patience.
USUAL = ["resume", "overwrite", "decay"]
DIGITS = "--dataset=rotated_digits --encoding=circle"
ROTATED = f"{DIGITS} --region=gap:angle:160-200 --model=rotation"
# Arguments of a training, as in a shell, and what the error must say.
BAD_FLAGS = {
    "--undefok=dpeth --dpeth=3": "--undefok is not a flag",
    f"--{'9' * 1200}=3": "9 is not a flag",
    "--dept=3": "--dept is not a flag, did you mean --depth?",
    "--epochs=1e3": "--epochs must be an integer, got '1e3'",
    "--learning_rate=nan": "--learning_rate must be a finite number",
    "--depth=": "--depth must be an integer, got ''",
    "--run_name=a/b": "--run_name must be a plain name",
    "--log_dir=~ --run_name=.bashrc.d": "--run_name must be a plain name",
    "--log_dir='a\nb'": "--log_dir must be text without control",
    "--flagfile=missing.flags": "--flagfile must be an existing file",
    "--flagfile=donout": "did you mean donut?",
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
    "--grid_size=1000 --eval_points=1000000": "--grid_size must be smaller:",
    "--export_dir=/dev/null": "--export_dir must name a folder that can be",
    "--export_dir='\udcff'": "--export_dir must be text without control",
    f"--digit_index=1 --digit_source=stand_in {ROTATED}": "--digit_index must",
}

CALL_MAIN = f"""
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
heavy = [name for name in {HEAVY} if name in sys.modules]
print(json.dumps([answers, heavy, os.listdir()]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple]:
    """Exit status and standard error of every bad command line."""
    result = subprocess.run(
        [sys.executable, "-c", CALL_MAIN],
        input=json.dumps([shlex.split(flags) for flags in BAD_FLAGS]),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("bad_flags"),
    )
    assert result.returncode == 0, result.stderr
    found, heavy, files = json.loads(result.stdout.splitlines()[-1])
    assert heavy == []
    assert files == []
    return dict(zip(BAD_FLAGS, found, strict=True))


@pytest.mark.parametrize("flags", BAD_FLAGS, ids=lambda text: text[:40])
def test_bad_flag_is_one_line(flags: str, answers: dict[str, tuple]) -> None:
    status, text = answers[flags]
    assert status == 2
    assert text.startswith("error: ")
    assert text.index("\n") == len(text) - 1
    assert BAD_FLAGS[flags] in text


def make_unusual_config() -> RunConfig:
    """Settings without their default values, where they go together."""
    numbers = {int: lambda v: v + 4, float: lambda v: v / 3 + 0.1}
    flat = {}
    for item in run_config.all_fields():
        kind, choices = type(item.default), item.metadata["choices"]
        if item.name in USUAL:
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


def test_home_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of/mine")
    config = parse_config(["--log_dir=~/logs", "--run_name=~"])
    assert (config.log_dir, config.run_name) == ("/home/of/mine/logs", "~")


def test_format_is_inverted_by_parse(tmp_path: Path) -> None:
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
def test_repeating_a_resumed_run_does_not_resume(flag: str) -> None:
    config = dataclasses.replace(RunConfig(), **{flag: True})
    assert parse_config(format_flags(config).splitlines()) == RunConfig()
    assert parse_config([]) == RunConfig()
