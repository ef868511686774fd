"""Steps end together with the runner of the pipeline."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.running_step import LIFELINE

WAIT = """
import time
from pipelines.running_step import run_step
with run_step("trainer"):
    time.sleep(60)
"""
# A runner that starts a step through a shell, as the SDK does.
RUNNER = """
import subprocess, sys
from pipelines.pipeline_root import PipelineRoot
with PipelineRoot(sys.argv[1]).claim("own"):
    step = ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", sys.argv[2]]
    with subprocess.Popen(step, stdout=subprocess.PIPE, text=True) as process:
        print(process.stdout.readline(), flush=True)
        process.wait()
"""


def run_python(code: str, lifeline: Path) -> int:
    environment = os.environ | {LIFELINE: str(lifeline)}
    return subprocess.call([sys.executable, "-c", code], env=environment)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_step_dies_with_a_runner_that_is_killed(
    tmp_path: Path, are_gone: Callable[[str], bool]
) -> None:
    command = [sys.executable, "-c", RUNNER, str(tmp_path / "root"), WAIT]
    environment = os.environ | {"TFCOMP_TEST": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as runner:
        assert "started" in runner.stdout.readline()
        runner.kill()
    assert are_gone(f"TFCOMP_TEST={tmp_path}")


def test_step_that_starts_after_the_runner_has_died(tmp_path: Path) -> None:
    assert run_python(WAIT, tmp_path / "gone") == 1


def test_step_lives_as_long_as_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    code = WAIT.replace("60", "0.3")
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert run_python(code, path) == 0
