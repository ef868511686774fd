"""A command as a task of Dask, on a worker."""

import contextlib
import fcntl
import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.sweeps.guarded_process import (
    POLL_SECONDS,
    start_guarded,
    wait_or_kill,
)
from tfcomp.sweeps.scheduler_options import list_gpus, share_gpu
from tfcomp.sweeps.warm_process import retire, run_warm

_TAIL_BYTES = 20_000
_MAX_REASON = 300
# A file system may keep the lock of a machine that is gone so long, and more.
_LOCK_SECONDS = 300
# Whoever ends a job tells its worker and its trials, in any order.
_TOLD_SECONDS = 2
_numbers = itertools.count()
_thread = threading.local()


def run_job(
    command: tuple[str | None, ...],
    log: str,
    folder: str,
    environment: dict[str, str],
    gpus: tuple[str, ...] | None,
    trials_per_gpu: int,
    setup: str | None,
) -> tuple[int, str, float]:
    """Runs a command; gives its exit status, why it failed, and its seconds.

    Its process has a group of its own, which is killed when the task is
    cancelled, and dies with the worker. When the worker has been told to end,
    as at the time limit of its job, the command runs again on another.

    Args:
        command: None in the first place is the Python of the worker.
        log: File that its output is appended to.
        gpus: GPUs of the machine, which its processes share; None are those
            that the worker sees. No GPU at all leaves it to the environment.
        trials_per_gpu: Processes on each of them.
        setup: See `scheduling.Task`.
    """
    start = time.monotonic()
    gpu = _choose_gpu(gpus, trials_per_gpu)
    variables = {**os.environ, **environment, **gpu}
    is_cancelled = _make_is_cancelled()
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with _hold_log(log, is_cancelled) as begin:
        if setup is None:
            retire()  # its memory, and that of its GPU, are wanted
            process = start_guarded(command, log, folder, variables)
            status = wait_or_kill(process, is_cancelled)
        else:
            program, option, module, *arguments = command
            assert (program, option) == (None, "-m")
            request = {"module": module, "arguments": arguments}
            request |= {"folder": folder, "log": log}
            status = run_warm(request, variables, setup, is_cancelled)
    if status:
        _run_elsewhere_if_told(status)
    reason = explain(status, read_last_line(Path(log), begin))
    return status, reason, time.monotonic() - start


@contextlib.contextmanager
def _hold_log(log: str, is_cancelled: Callable[[], bool]) -> Iterator[int]:
    """Locks the log of a command; yields the size that it has.

    A worker that was given up may still end its process of this command, so
    that the next one waits until it has; RunError if it never does.
    """
    end = time.monotonic() + _LOCK_SECONDS
    with open(log, "ab") as file:
        while not is_cancelled():
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > end:
                    rule = f"its process on another machine holds {log}"
                    raise RunError(rule) from error
            time.sleep(POLL_SECONDS)
        yield os.fstat(file.fileno()).st_size


def explain(status: int, last_line: str) -> str:
    """Why a process failed, in one line; empty if it did not."""
    if status == 0:
        return ""
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return last_line or f"exit status {status}"


def read_last_line(log: Path, begin: int = 0) -> str:
    """The last line with text after byte `begin`, short for a message."""
    with open(log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begin, size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    # A progress bar redraws its line with carriage returns.
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    last = next((line for line in reversed(lines) if line), "")
    return " ".join(last.removeprefix("error: ").split())[:_MAX_REASON]


def _choose_gpu(
    gpus: tuple[str, ...] | None, trials_per_gpu: int
) -> dict[str, str]:
    """The GPU of this thread; RunError if the worker sees none and should.

    Workers of a local cluster, whose names are numbers, have one thread each;
    the worker of a job has one for each of its trials.
    """
    if gpus is not None:
        from distributed import get_worker

        number = int(get_worker().name) if gpus else 0
        return share_gpu(gpus, number, trials_per_gpu) if gpus else {}
    if not hasattr(_thread, "number"):
        _thread.number = next(_numbers)
    found = list_gpus()
    if not found:
        raise RunError("the job sees none of the GPUs that --job_gpus asks for")
    return share_gpu(found, _thread.number, trials_per_gpu)


def _make_is_cancelled() -> Callable[[], bool]:
    """Whether the task that runs in this thread is not to go on.

    A thread cannot be interrupted, so Dask only marks its task: when it was
    cancelled, and when the client that wanted it has died.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or _is_ending()

    return is_cancelled


def _is_ending() -> bool:
    """Whether the worker of this thread has been told to end."""
    from distributed import Status, get_worker

    ends = (Status.closing_gracefully, Status.closing, Status.closed)
    return get_worker().status in ends


def _run_elsewhere_if_told(status: int) -> None:
    """Has Dask run a command elsewhere that ended as its worker is to end."""
    from distributed import Reschedule

    by_signal = status < 0 or status > 128
    end = time.monotonic() + (_TOLD_SECONDS if by_signal else 0)
    while not (ending := _is_ending()) and time.monotonic() < end:
        time.sleep(0.1)
    if ending:
        raise Reschedule
