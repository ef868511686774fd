"""The commands of the pipelines: help, and flags that are refused."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.run_local import claim_root, main
from tfcomp.config.errors import ConfigError, RunError

WRITABLE = "must name a folder that can be written"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd
    )


@pytest.mark.parametrize(
    ("flag", "rule"),
    [
        (
            "--profile=nix",
            "must be one of campaign, paper, quick, smoke, or a folder with a "
            "profile.toml, got 'nix'",
        ),
        ("--workers=-1", "must be at least 0, got -1"),
        ("--export_dir=", "must name a folder, got ''"),
        ("--export_dir=/dev/null/out", f"{WRITABLE}, got '/dev/null/out'"),
        ("--pipeline_root=/dev/null", f"{WRITABLE}, got '/dev/null'"),
        (
            "--scheduler=nowhere",
            "must be the address of a scheduler, as tcp://host:8786, got "
            "'nowhere'",
        ),
        ("--profil=smoke", "is not a flag, did you mean --profile?"),
    ],
)
def test_bad_flags(flag: str, rule: str, working_folder: Path) -> None:
    with pytest.raises((ConfigError, RunError)) as caught:
        main(["", flag])
    assert str(caught.value) == f"{flag.partition('=')[0]} {rule}"
    assert getattr(caught.value, "status", 2) == 2
    assert not list(working_folder.iterdir())


def test_folder_in_use(tmp_path: Path) -> None:
    with claim_root(tmp_path / "root"):
        with pytest.raises(RunError, match="another process is working"):
            claim_root(tmp_path / "root")
    claim_root(tmp_path / "root").close()  # the same command continues


def test_help_is_fast_and_needs_no_sdk(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pipelines import compile, run_local\n"
        "for module in (compile, run_local):\n"
        "    assert module.main(['', '--help']) == 0\n"
        "heavy = {'kfp', 'tensorflow', 'matplotlib', 'pandas', 'keras'}\n"
        "found = heavy & set(sys.modules)\n"
        "assert not found, found\n"
    )
    start = time.monotonic()
    result = run("-c", code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "--pipeline_root=" in result.stdout
    assert time.monotonic() - start < 30
