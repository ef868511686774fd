"""A pipeline on this machine: how it starts its steps, how it ends."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines import pipeline_runner
from pipelines.pipeline_root import PipelineRoot
from pipelines.profile import Profile
from pipelines.running_step import MARK
from tfcomp.sweeps.scheduler_options import SchedulerOptions


def test_steps_find_the_pipelines_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    pipeline_runner.start_sdk(PipelineRoot(str(tmp_path / "root")))
    command = [sys.executable, "-c", "import pipelines, tfcomp"]
    subprocess.run(command, cwd=tmp_path, check=True)


def print_events(*events: tuple[str, str]) -> Callable:
    """A pipeline that only says how its steps ended, then fails."""

    def pipeline(**arguments: object) -> None:
        for step, state in events:
            event = {"step": step, "state": state, "text": "so", "seconds": 1}
            print(f"{MARK}{json.dumps(event)}")
        raise RuntimeError("Pipeline finished with status FAILURE")

    return pipeline


@pytest.mark.parametrize(
    ("events", "line"),
    [
        (
            [("trainer", "done"), ("evaluator", "stopped")],
            "evaluator: so; nothing was pushed (see ",
        ),
        (
            [("trainer", "started")],
            "trainer: ended without a reason, as if it had been killed; "
            "nothing was pushed (see ",
        ),
        ([], "the SDK gave up; nothing was pushed (see "),
        ([("pusher", "done"), ("report", "failed")], "report: so (see "),
    ],
)
def test_reason_of_a_failure(
    events: list,
    line: str,
    tiny_profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    pipeline = print_events(*events)
    monkeypatch.setattr(pipeline_runner, "make_pipeline", lambda: pipeline)
    monkeypatch.setattr(pipeline_runner, "start_sdk", lambda root: None)
    root = PipelineRoot(str(tmp_path / "root"))
    with pytest.raises(pipeline_runner.PipelineError) as caught:
        pipeline_runner.run_pipeline(
            tiny_profile, root, "out", SchedulerOptions()
        )
    assert str(caught.value).startswith(line)
    assert caught.value.status == 1
    # What steps print is in the log, how they end on the terminal.
    assert MARK not in capsys.readouterr().out
    assert root.log.read_text().count(MARK) == len(events)
