"""Steps report how they go, and place what they write."""

import json
from pathlib import Path

import pytest
from kfp import dsl

from pipelines.running_step import (
    LIFELINE,
    MARK,
    RunningStep,
    read_event,
    run_step,
)
from tfcomp.config.errors import RunError


@pytest.fixture(autouse=True)
def _no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIFELINE, raising=False)


def test_events_of_a_step(capfd: pytest.CaptureFixture) -> None:
    with run_step("trainer") as step:
        with step.show_output():
            print("one\ntwo\nhalf a line", end="")
        print("only in the log")
        step.note = "a note"
    output = capfd.readouterr().out
    events = [e for e in map(read_event, output.splitlines()) if e]
    states = [event["state"] for event in events]
    assert states == ["started", "running", "running", "done"]
    assert [e.get("text") for e in events[1:]] == ["one", "two", "a note"]
    assert events[-1]["seconds"] >= 0
    assert "only in the log" in output and "half a line" not in output


def test_failure_has_its_reason_in_one_line(
    capfd: pytest.CaptureFixture,
) -> None:
    with pytest.raises(RunError), run_step("trainer"):
        raise RunError("it\nbroke")
    event = read_event(capfd.readouterr().out.splitlines()[-1])
    assert (event["state"], event["text"]) == ("failed", "it broke")


def test_other_lines_are_no_events() -> None:
    assert read_event("plain") is None
    assert read_event(f"{MARK}not json") is None
    assert read_event(f'    {MARK}{{"step": "a"}}') == {"step": "a"}


def test_output_goes_to_the_folder_that_stays(tmp_path: Path) -> None:
    artifact = dsl.Artifact(uri=str(tmp_path / "sdk" / "examples"))
    step = RunningStep("example_gen")
    step.place(artifact, "", "examples")
    assert artifact.path == str(tmp_path / "sdk" / "examples")
    step.place(artifact, str(tmp_path / "work"), "examples")
    assert artifact.path == str(tmp_path / "work" / "examples")
    assert (tmp_path / "work").is_dir() and (tmp_path / "sdk").is_dir()


def test_metrics_have_a_file(tmp_path: Path) -> None:
    metrics = dsl.Metrics(name="metrics", uri=str(tmp_path / "metrics"))
    RunningStep("trainer").log(metrics, {"trials": 2, "not run": 0.5})
    assert metrics.metadata == {"trials": 2, "not run": 0.5}
    assert json.loads(Path(metrics.path).read_text()) == metrics.metadata
