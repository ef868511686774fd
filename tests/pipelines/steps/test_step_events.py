"""Steps: they report, they fail with a reason, they die with the runner."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from kfp import dsl

from pipelines.local.pipeline_progress import LogStream
from pipelines.local.pipeline_progress import Progress
from pipelines.profile import compute_code
from pipelines.steps.step_events import LIFELINE
from pipelines.steps.step_events import MARK
from pipelines.steps.step_events import read_event
from pipelines.steps.step_events import run_step
from pipelines.steps.step_events import show_output
from pipelines.steps.step_outputs import log_metrics
from pipelines.steps.step_outputs import place
from tfcomp.config.errors import RunError


def read_events(text: str) -> list[dict]:
    return [e for e in map(read_event, text.splitlines()) if e]


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


GOOD = """
from pipelines.steps.step_events import run_step, show_output
with run_step("trainer") as step:
    with show_output(step):
        print("one\\ntwo")
    print("only in the log")
    step.note = "a note"
"""
BAD = """
from pipelines.steps.step_events import run_step
with run_step("trainer"):
    raise ValueError("it\\nbroke")
"""


def test_events_of_a_step() -> None:
    result = run_python(GOOD)
    assert result.returncode == 0, result.stderr
    events = read_events(result.stdout)
    assert [e["state"] for e in events] == [
        "started",
        "running",
        "running",
        "done",
    ]
    assert [e.get("text") for e in events[1:]] == ["one", "two", "a note"]
    assert events[-1]["seconds"] >= 0
    assert "only in the log" in result.stdout


def test_failure_has_its_reason_in_one_line() -> None:
    result = run_python(BAD)
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    event = read_events(result.stdout)[-1]
    assert (event["state"], event["text"]) == ("failed", "it broke")


def test_other_lines_are_no_events() -> None:
    assert read_event("plain") is None
    assert read_event(f"{MARK}not json") is None
    assert read_event(f'    {MARK}{{"step": "a"}}') == {"step": "a"}


# Progress


def feed(*lines: str) -> tuple[list[str], Progress, str]:
    """What is shown and what is logged of lines of output."""
    shown: list[str] = []
    written: list[str] = []
    log = SimpleNamespace(write=written.append, flush=lambda: None)
    progress = Progress(shown.append)
    stream = LogStream(log, progress)
    for line in lines:
        # In pieces, as the SDK writes.
        stream.write("    ")
        stream.write(line + "\n")
    return shown, progress, "".join(written)


def test_progress_out_of_the_flood() -> None:
    shown, progress, log = feed(
        "noise",
        f'{MARK}{{"step": "trainer", "state": "started"}}',
        f'{MARK}{{"step": "trainer", "state": "running", "text": "[1/2]"}}',
        f'{MARK}{{"step": "trainer", "state": "done", "text": "2 trials", '
        '"seconds": 61.2}',
    )
    assert shown == [
        "        trainer            [1/2]",
        "done    trainer            2 trials  (61 s)",
    ]
    assert progress.problems == [] and progress.is_done("trainer")
    assert "noise" in log and log.count(MARK) == 3


def test_problems_are_kept() -> None:
    shown, progress, _ = feed(
        f'{MARK}{{"step": "evaluator", "state": "stopped", "text": "bad", '
        '"seconds": 1}',
    )
    assert progress.problems == ["evaluator: bad"]
    assert shown == ["stopped evaluator          bad  (1 s)"]


def test_step_that_ended_without_a_word() -> None:
    shown, progress, _ = feed(
        f'{MARK}{{"step": "trainer", "state": "started"}}'
    )
    progress.finish()
    (problem,) = progress.problems
    assert problem.startswith("trainer: ended without a reason")
    assert shown[2].startswith("failed  trainer")


def test_kept_and_skipped_steps() -> None:
    shown, progress, _ = feed(
        "Task example-gen cache hit (key=12ab); skipping execution."
    )
    progress.finish()
    assert shown[0] == "kept    example_gen        done before"
    assert len(shown) == 7
    assert all(line.startswith("skipped ") for line in shown[1:])


# Places


def test_output_goes_to_the_folder_that_stays(tmp_path: Path) -> None:
    class Artifact:
        uri = str(tmp_path / "sdk" / "examples")
        path = property(lambda self: self.uri)

    artifact = Artifact()
    place(artifact, "", "examples")
    assert artifact.path == str(tmp_path / "sdk" / "examples")
    place(artifact, str(tmp_path / "work"), "examples")
    assert artifact.path == str(tmp_path / "work" / "examples")
    assert (tmp_path / "work").is_dir() and (tmp_path / "sdk").is_dir()


def test_metrics_have_a_file(tmp_path: Path) -> None:
    metrics = dsl.Metrics(name="metrics", uri=str(tmp_path / "metrics"))
    log_metrics(metrics, {"trials": 2, "not run": 0.5})
    assert metrics.metadata == {"trials": 2, "not run": 0.5}
    assert json.loads(Path(metrics.path).read_text()) == metrics.metadata


def test_code_version_depends_on_sources(tmp_path: Path) -> None:
    assert compute_code([]) == compute_code([])
    assert compute_code(["json"]) != compute_code([])


# The runner's end

WAIT = """
import time
from pipelines.steps.step_events import run_step
with run_step("trainer"):
    time.sleep(60)
"""
# A runner that starts a step through a shell, as the SDK does.
RUNNER = """
import subprocess, sys
from pipelines.local.pipeline_root import PipelineRoot
with PipelineRoot(sys.argv[1]).claim("own"):
    step = ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", sys.argv[2]]
    with subprocess.Popen(step, stdout=subprocess.PIPE, text=True) as process:
        print(process.stdout.readline(), flush=True)
        process.wait()
"""


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
    result = run_python(WAIT, **{LIFELINE: str(tmp_path / "gone")})
    assert result.returncode == 1


def test_step_lives_as_long_as_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    code = WAIT.replace("60", "0.3")
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = run_python(code, **{LIFELINE: str(path)})
    assert result.returncode == 0


def test_nothing_is_watched_without_a_runner(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.delenv(LIFELINE, raising=False)
    with pytest.raises(RunError), run_step("evaluator") as step:
        with show_output(step):
            print("half a line", end="")
        raise RunError("no")
    assert "half a line" not in capfd.readouterr().out
