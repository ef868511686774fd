"""A command as a task of Dask, on a worker."""

import contextlib
import fcntl
import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.sweeps.guarded_process import (
    POLL_SECONDS,
    IsCancelled,
    start_guarded,
    wait_or_kill,
)
from tfcomp.sweeps.scheduler_options import list_gpus, share_gpu
from tfcomp.sweeps.warm_process import retire, run_warm

_TAIL_BYTES = 20_000
_MAX_REASON = 300
# A file system may keep the lock of a machine that is gone so long, and more.
_LOCK_SECONDS = 300
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

    Python is None in the command: the worker has its own. The GPUs are None
    for those that the worker sees, and empty to leave them alone.
    """
    from distributed import Reschedule, Status, get_worker

    start = time.monotonic()
    worker = get_worker()
    key = worker.get_current_task()
    ends = (Status.closing_gracefully, Status.closing, Status.closed)

    def is_cancelled() -> bool:
        # Dask marks a task, also when the client that wanted it has died.
        task = worker.state.tasks.get(key)
        is_unwanted = task is None or task.state == "cancelled"
        return is_unwanted or worker.status in ends

    gpu = _choose_gpu(gpus, trials_per_gpu, worker.name)
    variables = {**os.environ, **environment, **gpu}
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
        # Whoever ends a job tells its worker and its trials, in any order.
        by_signal = status < 0 or status > 128
        end = time.monotonic() + (_TOLD_SECONDS if by_signal else 0)
        while worker.status not in ends and time.monotonic() < end:
            time.sleep(0.1)
        if worker.status in ends:
            raise Reschedule
    return status, explain(status, log, begin), time.monotonic() - start


@contextlib.contextmanager
def _hold_log(log: str, is_cancelled: IsCancelled) -> Iterator[int]:
    """Locks the log of a command; yields the size that it has."""
    # A worker that was given up may still end its process of this command.
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


def explain(status: int, log: str, begin: int) -> str:
    """Why a process failed, in one line; empty if it did not.

    That is the last line with text of its log, from byte `begin` on.
    """
    if status == 0:
        return ""
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    with open(log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begin, size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    # A progress bar redraws its line with carriage returns.
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    last = lines[-1].strip() if lines else ""
    words = last.removeprefix("error: ").split()
    return " ".join(words)[:_MAX_REASON] or f"exit status {status}"


def _choose_gpu(
    gpus: tuple[str, ...] | None, trials_per_gpu: int, worker: str | int
) -> dict[str, str]:
    """The GPU of this thread; RunError if the worker sees none and should.

    Workers of a local cluster, whose names are numbers, have one thread each;
    the worker of a job has one for each of its trials.
    """
    if gpus is not None:
        number = int(worker) if gpus else 0
        return share_gpu(gpus, number, trials_per_gpu) if gpus else {}
    if not hasattr(_thread, "number"):
        _thread.number = next(_numbers)
    found = list_gpus()
    if not found:
        raise RunError("the job sees none of the GPUs that --job_gpus asks for")
    return share_gpu(found, _thread.number, trials_per_gpu)
