"""Files of others connect to nothing and remove nothing on their own."""

from pathlib import Path

import pytest

from tfcomp import train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import make_flags, parse_flags
from tfcomp.sweeps.sweep_run import define_flags

SCHEDULER = "--scheduler=tcp://evil:8786"


def parse(*arguments: str) -> dict:
    return parse_flags(arguments, define_flags())


@pytest.mark.parametrize(
    "line",
    [
        SCHEDULER,
        "-scheduler=tcp://evil:8786",
        "--scheduler\ntcp://evil:8786",
        "--cluster=slurm",
        "--overwrite",
        "--overwrite=True",
        "--overwrite=1",
        "--overwrite=t",
        "--flagfile=inner.txt",
    ],
)
def test_files_cannot_ask_for_it(line: str, working_folder: Path) -> None:
    """Before, only plugins were refused."""
    Path("inner.txt").write_text(SCHEDULER)
    Path("renamed.txt").write_text(f"--depth=2\n{line}\n")
    for trust in ([], ["--notrust_flagfile"], ["--scheduler=tcp://mine:1"]):
        rule = "a flagfile has --.*--trust_flagf|must have one --flag=value"
        with pytest.raises(RunError, match=rule):
            parse("--flagfile=renamed.txt", *trust)


@pytest.mark.parametrize("trust", ["--trust_flagfile", SCHEDULER])
def test_the_command_line_can(trust: str, working_folder: Path) -> None:
    Path("a.flags").write_text(SCHEDULER)
    values = parse(trust, "--flagfile=a.flags")
    assert values["scheduler"] == "tcp://evil:8786"


@pytest.mark.parametrize("flag", ["--trust_flagfile", "--notrust_flagfile"])
def test_files_do_not_trust_themselves(flag: str, working_folder: Path) -> None:
    Path("a.flags").write_text(f"{flag}\n{SCHEDULER}")
    with pytest.raises(RunError, match="a flagfile cannot say"):
        parse("--flagfile=a.flags", "--trust_flagfile")


def test_a_record_has_them_switched_off(working_folder: Path) -> None:
    lines = ["--overwrite=false", "--plugins=", "--scheduler=", "--nooverwrite"]
    Path("run.flags").write_text("\n".join(lines))
    assert parse("--flagfile=run.flags", "--overwrite")["overwrite"]


def test_a_run_is_not_removed(working_folder: Path) -> None:
    Path("theirs.flags").write_text("--flagfile=smoke\n--overwrite\n")
    Path("tensorboard_logs/smoke").mkdir(parents=True)
    with pytest.raises(RunError, match="which removes a run"):
        train.main(["train", "theirs.flags"])


def test_unknown_flags_are_never_ignored() -> None:
    for flags in (["--undefok=dpeth"], ["--undefok", "dpeth"]):
        with pytest.raises(RunError, match="--undefok is not a flag"):
            parse(*flags, "--dpeth=3")


@pytest.mark.parametrize("name", ["a\u200bb", "a\u202eb"])
def test_paths_have_no_invisible_characters(name: str) -> None:
    values = make_flags({"output": ("", "Where to write.")})
    with pytest.raises(ConfigError, match="--output must be text without con"):
        parse_flags([f"--output={name}"], values)
