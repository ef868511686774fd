"""The progress of a pipeline, read from the output of its steps."""

from __future__ import annotations

from types import SimpleNamespace

from pipelines.local.pipeline_progress import LogStream
from pipelines.local.pipeline_progress import Progress
from pipelines.pipeline import STEPS
from pipelines.steps.step_events import MARK


def feed(*lines: str) -> tuple[list[str], Progress, str]:
    """What is shown and what is logged of lines of output."""
    shown: list[str] = []
    written: list[str] = []
    log = SimpleNamespace(write=written.append, flush=lambda: None)
    progress = Progress(STEPS, shown.append)
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
