"""Processes that are watched, and never left behind."""

from __future__ import annotations

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

    Args:
        command: Program and arguments; None in the first place is the Python
            that runs us.
    """
    resolved = [sys.executable if part is None else part for part in command]
    return [sys.executable, *GUARD, str(os.getpid()), *resolved]


def wait_or_kill(
    process: subprocess.Popen, is_cancelled: Callable[[], bool]
) -> int:
    """Waits for a process; kills its whole group once it is cancelled.

    Args:
        process: The process, which leads its group.
        is_cancelled: Asked twice a second.

    Returns:
        The exit status; negative is the signal that killed the process.
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
