"""Processes that are watched, and never left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# Isolated from the environment and without packages, which it does not need.
GUARD = ("-I", "-S", str(Path(__file__).with_name("guard.py")))
POLL_SECONDS = 0.5


def make_guarded(command: tuple[str | None, ...]) -> list[str]:
    """The command, so that it dies with the calling thread.

    None in its first place is the Python that runs us.
    """
    resolved = [sys.executable if part is None else part for part in command]
    return [sys.executable, *GUARD, str(os.getpid()), *resolved]


def wait_or_kill(
    process: subprocess.Popen, is_cancelled: Callable[[], bool]
) -> int:
    """Waits for a process, which leads its group; returns its exit status.

    It asks `is_cancelled` twice a second; once that says yes, it kills the
    group. A negative status is the signal that killed the process.
    """
    try:
        while not is_cancelled():
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    finally:  # what it has started must not stay behind either
        kill_group(process)
    return process.wait()


def kill_group(process: subprocess.Popen) -> None:
    """Kills a process that leads a group, and the group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
