"""The process that a worker keeps warm for one trial after the other.

It imports TensorFlow and traces functions once (`training.prepared_models`). A
command that crashes takes it along and nothing else: a new one follows a
failure or many commands, and serves another setup.

    python -m tfcomp.sweeps.warm_process SOCKET

reads requests from the socket with that file descriptor, a line of JSON each:
the `module` of a command, its `arguments`, the `folder` to work in, and the
`log` that its output is appended to; it answers each with its exit status. It
ends when the socket is closed, or when it has been idle for a while.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import IO, Any

import psutil

from tfcomp.config.command import exit_on_user_error
from tfcomp.sweeps.guarded_process import (
    POLL_SECONDS,
    IsCancelled,
    kill_group,
    start_guarded,
)

THIS = "tfcomp.sweeps.warm_process"
IDLE_SECONDS = 120
# A process is replaced after so many commands, or when it has grown so large:
# libraries leave something behind in every one of them.
MAX_COMMANDS = 50
MAX_MEGABYTES = 3000
Needs = tuple[str, str, dict[str, str]]  # setup, folder and environment
_kept = threading.local()


def run_warm(
    request: Mapping[str, Any],
    environment: Mapping[str, str],
    setup: str,
    is_cancelled: IsCancelled,
) -> int:
    """The exit status of a request, run in the warm process of this thread.

    Negative is the signal that killed it, also since it was cancelled. The
    process has been set up for the setup, and has this environment alone.
    """
    needs = (setup, request["folder"], dict(environment))
    process: WarmProcess | None = getattr(_kept, "process", None)
    if process is None or not process.is_fit(needs):
        retire()
        process = _kept.process = WarmProcess(needs, request["log"])
    status = process.run(request, is_cancelled)
    if status != 0:  # a failure may have left anything behind
        retire()
    return status


def retire() -> None:
    """Ends the warm process of this thread, if there is one."""
    process: WarmProcess | None = getattr(_kept, "process", None)
    if process is not None:
        process.end()
    _kept.process = None


class WarmProcess:
    """A process that runs commands, in a group of its own."""

    def __init__(self, needs: Needs, log: str) -> None:
        self._needs = needs
        self._count = 0
        self._megabytes = 0
        self._used = time.monotonic()
        self._connection, theirs = socket.socketpair()
        self._replies = self._connection.makefile("r")
        with theirs:
            number = theirs.fileno()
            command = (None, "-m", THIS, str(number))
            self._process = start_guarded(command, log, *needs[1:], [number])

    def is_fit(self, needs: Needs) -> bool:
        """Whether it may run a command that has such needs."""
        return (
            self._process.poll() is None
            and self._needs == needs
            and self._count < MAX_COMMANDS
            and self._megabytes < MAX_MEGABYTES
            # It ends when it has been idle for twice as long.
            and time.monotonic() - self._used < IDLE_SECONDS / 2
        )

    def run(self, request: Mapping[str, Any], is_cancelled: IsCancelled) -> int:
        """Runs a command; returns its status as `run_warm` does."""
        self._count += 1
        line, reply = json.dumps(dict(request)) + "\n", ""
        with contextlib.suppress(ConnectionError):
            self._connection.sendall(line.encode())
            reply = self._wait(is_cancelled)
        if not reply:  # it has died, or nobody wants the answer any more
            return self.end() or 1
        self._used = time.monotonic()
        memory = psutil.Process(self._process.pid).memory_info().rss
        self._megabytes = memory // 2**20
        return int(reply)

    def end(self) -> int:
        """Kills it and all that it has started; returns its status."""
        self._replies.close()
        self._connection.close()
        # One that dies by itself has a status that says why.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(POLL_SECONDS)
        kill_group(self._process)
        return self._process.wait()

    def _wait(self, is_cancelled: IsCancelled) -> str:
        """The line that it answers, empty if it dies or is cancelled."""
        while not is_cancelled():
            if select.select([self._connection], [], [], POLL_SECONDS)[0]:
                return self._replies.readline()
        kill_group(self._process)
        return ""


def main(argv: list[str]) -> None:
    """Serves requests until there are no more."""
    with socket.socket(fileno=int(argv[1])) as connection:
        with connection.makefile("rw") as lines:
            while line := read_line(lines):
                request = json.loads(line)
                os.chdir(request["folder"])
                # Also what C++ code prints.
                with open(request["log"], "ab") as log:
                    for descriptor in (1, 2):
                        os.dup2(log.fileno(), descriptor)
                status = run(request["module"], request["arguments"])
                print(status, file=lines, flush=True)


def read_line(lines: IO[str]) -> str:
    """The next line, empty at the end; a signal ends us if none comes."""
    # A command has it raise what would stand in its log.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.alarm(IDLE_SECONDS)
    line = lines.readline()
    signal.alarm(0)
    return line


def run(module: str, arguments: list[str]) -> int:
    """Calls `main` of a module in this process; returns its exit status."""
    sys.argv = [module, *arguments]
    try:
        exit_on_user_error(importlib.import_module(module).main)
    except SystemExit as end:
        return end.code
    except BaseException:  # the answer must be sent, whatever has happened
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv)
