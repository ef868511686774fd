"""The process that a worker keeps warm for one trial after the other.

It has imported TensorFlow, and holds the traced functions of its last trial
(see `warm_server` and `training.prepared_model`). A command that crashes takes
it along and nothing else: the next command gets a new one. So does a command
that needs another setup, and one that follows a failure or many others.
"""

import contextlib
import json
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from tfcomp.sweeps.guarded_process import POLL_SECONDS, kill_group, make_guarded
from tfcomp.sweeps.warm_server import IDLE_SECONDS

SERVER = "tfcomp.sweeps.warm_server"
# A process is replaced after so many commands, or when it has grown so large:
# libraries leave something behind in every one of them.
MAX_COMMANDS = 50
MAX_MEGABYTES = 3000
_kept = threading.local()


def run_warm(
    request: Mapping[str, Any],
    environment: Mapping[str, str],
    setup: str,
    is_cancelled: Callable[[], bool],
) -> int:
    """Runs a command in the warm process of this thread.

    Args:
        request: What to run, see `warm_server`.
        environment: All variables of the process.
        setup: What the process must have been set up for.
        is_cancelled: Asked twice a second; once it says yes, the process and
            whatever it has started are killed.

    Returns:
        The exit status of the command; negative is the signal that killed
        the process.
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
    """A process that runs commands, in a group of its own.

    Args:
        needs: Setup, working directory and environment.
        log: File that receives what it prints before its first command.
    """

    def __init__(
        self, needs: tuple[str, str, dict[str, str]], log: str
    ) -> None:
        self._needs = needs
        self._count = 0
        self._megabytes = 0
        self._used = time.monotonic()
        self._connection, theirs = socket.socketpair()
        self._replies = self._connection.makefile("r")
        with theirs, open(log, "ab") as output:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                make_guarded((None, "-m", SERVER, str(number))),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=needs[1],
                env=needs[2],
                pass_fds=[number],
                start_new_session=True,
            )

    def is_fit(self, needs: tuple[str, str, dict[str, str]]) -> bool:
        """Whether it may run a command that has such needs."""
        return (
            self._process.poll() is None
            and self._needs == needs
            and self._count < MAX_COMMANDS
            and self._megabytes < MAX_MEGABYTES
            # It ends when it has been idle for twice as long.
            and time.monotonic() - self._used < IDLE_SECONDS / 2
        )

    def run(
        self, request: Mapping[str, Any], is_cancelled: Callable[[], bool]
    ) -> int:
        """Runs a command; returns its status as `run_warm` does."""
        self._count += 1
        line = json.dumps(dict(request)) + "\n"
        try:
            self._connection.sendall(line.encode())
            reply = self._wait(is_cancelled)
        except ConnectionError:
            reply = ""
        if not reply:  # it has died, or nobody wants the answer any more
            return self.end() or 1
        self._used = time.monotonic()
        self._megabytes = self._measure_memory()
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

    def _wait(self, is_cancelled: Callable[[], bool]) -> str:
        """The line that it answers, empty if it dies or is cancelled."""
        while not is_cancelled():
            if select.select([self._connection], [], [], POLL_SECONDS)[0]:
                return self._replies.readline()
        kill_group(self._process)
        return ""

    def _measure_memory(self) -> int:
        return psutil.Process(self._process.pid).memory_info().rss // 2**20
