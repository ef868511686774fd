"""Steps end together with the process that runs the pipeline.

The parent of a step is a shell of the SDK, which outlives a runner that is
killed. So the runner locks a file, which the system unlocks however the runner
ends, and every step waits for that lock.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The variable that tells the steps which file the runner has locked.
LIFELINE = "TFCOMP_PIPELINE_LIFELINE"


@contextmanager
def keep_steps_alive(folder: Path) -> Iterator[None]:
    """Holds the lock for the steps that the block starts.

    Each runner makes a file of its own in the folder, so that a step of an
    earlier runner does not take a later one for it.
    """
    for stale in folder.glob(".alive-*"):
        stale.unlink()
    path = folder / f".alive-{os.getpid()}"
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.environ[LIFELINE] = str(path)
        try:
            yield
        finally:
            del os.environ[LIFELINE]
            path.unlink()


def die_with_runner() -> None:
    """Ends this process as soon as the runner of the pipeline is gone.

    On a cluster there is no such runner, and nothing happens.
    """
    path = os.environ.get(LIFELINE)
    if path:
        threading.Thread(
            target=_wait_and_exit, args=(path,), daemon=True
        ).start()


def _wait_and_exit(path: str) -> None:
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # waits for the runner's end
    except FileNotFoundError:
        pass  # the runner ended before this step began
    os._exit(1)
