"""The work of the steps: each prints how it ends, and places its outputs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import explain_failure, first_line
from tfcomp.storage.files import make_folder
from tfcomp.sweeps.sweep_run import format_seconds

if TYPE_CHECKING:
    from kfp import dsl


@dataclass
class Step:
    """What is printed of a step at its end: one word and one line."""

    state: str = "done"
    note: str = ""


@contextlib.contextmanager
def run_step(name: str) -> Iterator[Step]:
    """Prints a line when the block ends: its result, or why it failed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    start = time.monotonic()
    step = Step()
    try:
        yield step
    except BaseException as error:
        step.state = "failed"
        explained = explain_failure(error)
        step.note = explained[0] if explained else first_line(error)
        raise
    finally:
        seconds = format_seconds(time.monotonic() - start)
        line = f"{step.state:8}{name:17}  {step.note}  ({seconds})"
        print(line, flush=True)


def place(artifact: dsl.Artifact, work_dir: str, name: str) -> Path:
    """Moves an output to `<work_dir>/<name>`, where the next run continues."""
    if work_dir:
        artifact.uri = os.path.join(work_dir, name)
    path = Path(artifact.path)
    make_folder(path.parent)
    return path
