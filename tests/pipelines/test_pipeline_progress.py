"""The progress of a pipeline, read from the output of its steps."""

import io
import json

from pipelines.pipeline import STEPS
from pipelines.pipeline_runner import LogStream, Progress
from pipelines.running_step import MARK


def feed(*lines: str | dict) -> tuple[list[str], Progress, str]:
    """What is shown and what is logged of lines and events."""
    terminal, log = io.StringIO(), io.StringIO()
    progress = Progress(STEPS, terminal)
    stream = LogStream(log, progress)
    for line in lines:
        if isinstance(line, dict):
            line = f"{MARK}{json.dumps(line)}"
        # In pieces, as the SDK writes.
        stream.write("    ")
        stream.write(line + "\n")
    progress.finish()
    return terminal.getvalue().splitlines(), progress, log.getvalue()


def test_progress_out_of_the_flood() -> None:
    trainer = {"step": "trainer"}
    shown, progress, log = feed(
        "noise",
        trainer | {"state": "started"},
        trainer | {"state": "running", "text": "[1/2]"},
        trainer | {"state": "done", "text": "2 trials", "seconds": 61.2},
    )
    assert shown[:2] == [
        "        trainer            [1/2]",
        "done    trainer            2 trials  (61 s)",
    ]
    assert progress.problems == [] and progress.is_done("trainer")
    assert "noise" in log and log.count(MARK) == 3


def test_problems_are_kept() -> None:
    event = {"step": "evaluator", "state": "stopped", "text": "bad"}
    shown, progress, _ = feed(event | {"seconds": 1})
    assert progress.problems == ["evaluator: bad"]
    assert shown[0] == "stopped evaluator          bad  (1 s)"


def test_step_that_ended_without_a_word() -> None:
    shown, progress, _ = feed({"step": "trainer", "state": "started"})
    (problem,) = progress.problems
    assert problem.startswith("trainer: ended without a reason")
    assert any(line.startswith("failed  trainer") for line in shown)


def test_kept_and_skipped_steps() -> None:
    shown, *_ = feed("Task example-gen cache hit (key=12ab); skipping it.")
    assert shown[0] == "kept    example_gen        done before"
    assert len(shown) == len(STEPS)
    assert all(line.startswith("skipped ") for line in shown[1:])
