"""The work of the steps: each prints how it ends, and places its outputs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import explain_failure
from tfcomp.storage.files import make_folder
from tfcomp.sweeps.progress import format_seconds

if TYPE_CHECKING:
    from kfp import dsl


@dataclass
class RunningStep:
    """Result of a step: one line, and whether it stops the pipeline."""

    note: str = ""
    is_stopped: bool = False


@contextlib.contextmanager
def run_step(name: str) -> Iterator[RunningStep]:
    """Prints a line when the block ends: its result, or why it failed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    step, start, state = RunningStep(), time.monotonic(), "failed"
    try:
        yield step
        state = "stopped" if step.is_stopped else "done"
    except BaseException as error:
        line, _ = explain_failure(error) or (" ".join(str(error).split()), 1)
        step.note = line or type(error).__name__
        raise
    finally:
        seconds = format_seconds(time.monotonic() - start)
        print(f"{state:8}{name:17}  {step.note}  ({seconds})", flush=True)


def place(artifact: dsl.Artifact, work_dir: str, name: str) -> Path:
    """Moves an output to `<work_dir>/<name>`, where the next run continues."""
    if work_dir:
        artifact.uri = os.path.join(work_dir, name)
    path = Path(artifact.path)
    make_folder(path.parent)
    return path


def list_files(folder: Path) -> list[tuple[str, Path]]:
    """Lists the files below a folder with their names there, sorted."""
    files = filter(Path.is_file, sorted(folder.glob("**/*")))
    return [(path.relative_to(folder).as_posix(), path) for path in files]
