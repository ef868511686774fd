"""Processes that are watched, and never left behind."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# Isolated from the environment and without packages, which it does not need.
GUARD = ("-I", "-S", str(Path(__file__).with_name("guard.py")))
POLL_SECONDS = 0.5
IsCancelled = Callable[[], bool]  # asked every so many seconds


def make_guarded(command: tuple[str | None, ...]) -> list[str]:
    """The command, to die with the calling thread; None is our Python."""
    resolved = [sys.executable if part is None else part for part in command]
    return [sys.executable, *GUARD, str(os.getpid()), *resolved]


def start_guarded(
    command: tuple[str | None, ...],
    log: str,
    folder: str,
    environment: Mapping[str, str],
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen:
    """Starts a command, which leads a group, with its output at a log's end."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            make_guarded(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            pass_fds=pass_fds,
            start_new_session=True,
        )


def wait_or_kill(process: subprocess.Popen, is_cancelled: IsCancelled) -> int:
    """The exit status of a process; once cancelled, its group is killed."""
    try:
        while not is_cancelled():
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(POLL_SECONDS)
    finally:  # what it has started must not stay behind either
        kill_group(process)
    return process.wait()


def kill_group(process: subprocess.Popen) -> None:
    """Kills a process that leads a group, and the group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
