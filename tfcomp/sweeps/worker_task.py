"""Runs a task inside of a Dask worker.

A worker runs one task at a time, in one process that imports TensorFlow once
and keeps traced models for the next task (`training.prepared_models`). What a
process cannot change later, such as its plugins and the threads of TensorFlow,
is its `Setup`. A task that needs another setup ends the process, and the nanny
of the worker starts a new one; so does the first task after a failure.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import RunError, explain_failure
from tfcomp.config.plugins import import_plugins
from tfcomp.config.stopping import IsStopped, StopRequested, stop_when
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import LinkError, make_subfolder, open_log
from tfcomp.sweeps.scheduler_options import list_gpus, pin_threads, share_gpu

if TYPE_CHECKING:
    from distributed import Worker

MAX_BYTES = 3 * 10**9  # of a process; a larger one is replaced
_LOCK_SECONDS = 300  # that a lost worker may take to leave a task
_FETCH_SECONDS = 10  # that the outcome of an earlier task may take
KEY = "task"  # the first part of the key of a task
_MAX_REASON = 300  # characters
_POLL_SECONDS = 0.5
TaskFunction = Callable[[list[str]], object]


@dataclass(frozen=True)
class Setup:
    """The state of a process that its first task decides."""

    folder: str  # to work in
    code: str  # the version of the code; empty if it is not checked
    plugins: str = ""
    replicas: int = 0  # among which a CPU is divided
    threads: int = 0  # 0 leaves the number to the environment
    gpus: tuple[str, ...] | None = ()  # None: those that the worker sees
    trials_per_gpu: int = 1
    isolated: str = ""  # the only task of the process


class _Process:
    """The state of this process."""

    setup: Setup | None = None
    is_spent = False
    lock = threading.Lock()  # a worker of another cluster may have threads


def run_task(
    function: TaskFunction, arguments: Sequence[str], log: str, setup: Setup
) -> tuple[str, float]:
    """Calls a function with arguments, its output appended to a log.

    Returns the reason of a failure in one line, empty if there is none, and
    the seconds that the call took. The task stops when nobody wants its result
    or its worker is about to end; another worker then goes on with it.
    """
    from distributed import Reschedule, get_worker

    worker = get_worker()
    is_stopped = _make_stop_check(worker)
    with _Process.lock:
        if problem := _prepare(setup, worker):
            return problem, 0.0
        start = time.monotonic()
        try:
            with _lock_log(log, is_stopped), stop_when(is_stopped):
                with _append_output(log):
                    reason = _call(function, arguments, setup)
        except StopRequested as error:
            raise Reschedule from error
        except OSError as error:
            reason = f"{log}: {error.strerror}"
        except LinkError as error:
            reason = str(error)
        _Process.is_spent = bool(reason)
        return reason, time.monotonic() - start


def _make_stop_check(worker: Worker) -> IsStopped:
    """A check whether the running task is still wanted on this worker."""
    from distributed import Status

    key = worker.get_current_task()
    ends = (Status.closing_gracefully, Status.closing, Status.closed)

    def is_stopped() -> bool:
        # Dask cancels a task also when the client that wanted it has died.
        task = worker.state.tasks.get(key)
        is_unwanted = task is None or task.state == "cancelled"
        return is_unwanted or worker.status in ends

    return is_stopped


def _prepare(setup: Setup, worker: Worker) -> str:
    """Sets this process up, or replaces it; returns why it cannot be used."""
    import psutil

    if _Process.setup is None:
        os.chdir(setup.folder)
        os.environ.update(_choose_environment(setup, worker.name))
        _limit_loaded_libraries(setup.threads)
        _separate_random_states()
        _Process.setup = setup
        return ""
    is_large = psutil.Process().memory_info().rss > MAX_BYTES
    if _Process.setup != setup or _Process.is_spent or is_large:
        return _replace_process(worker)
    return ""


def _replace_process(worker: Worker) -> str:
    """Ends this process, for its nanny to start another that runs the task.

    Returns a reason if the worker has no nanny.
    """
    if worker.nanny is None:
        return "the worker cannot start a new process: start it with --nanny"
    # Dask would run earlier tasks again whose results are lost.
    end = time.monotonic() + _FETCH_SECONDS
    while any(key[0] == KEY for key in list(worker.data)):
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    os._exit(0)


def _choose_environment(setup: Setup, worker: str | int) -> dict[str, str]:
    """Variables for threads and the GPU, which TensorFlow reads at its start.

    The names of workers end with their number on the machine or in the job.
    """
    gpus = list_gpus() if setup.gpus is None else list(setup.gpus)
    last = re.search(r"\d+$", str(worker))
    number = int(last[0]) if last else 0
    share = share_gpu(gpus, number, setup.trials_per_gpu) if gpus else {}
    return pin_threads(setup.threads) | share


def _limit_loaded_libraries(threads: int) -> None:
    """Limits the threads of libraries that Dask has loaded already."""
    import numpy  # noqa: F401  its library must be there to be limited
    import threadpoolctl

    if threads:
        threadpoolctl.threadpool_limits(threads)


class _RandomState(threading.local):
    def __init__(self) -> None:
        self.generator = random.Random()


def _separate_random_states() -> None:
    """Gives every thread a state of `random` of its own.

    Keras seeds initial weights from it, while threads of Dask draw from it.
    """
    state = _RandomState()

    def make(name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: getattr(state.generator, name)(
            *args, **kwargs
        )

    for name in random.__all__:
        if hasattr(random.Random, name):
            setattr(random, name, make(name))


@contextlib.contextmanager
def _lock_log(log: str, is_stopped: IsStopped) -> Iterator[None]:
    """Holds the log of a task, which a lost worker may still be running."""
    end = time.monotonic() + _LOCK_SECONDS
    folder = Path(log).parent
    make_subfolder(folder.parent, folder.name)
    with open_log(Path(log)) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if is_stopped():
                    raise StopRequested from error
                if time.monotonic() > end:
                    text = "another worker holds this log"
                    raise BlockingIOError(error.errno, text) from error
            time.sleep(_POLL_SECONDS)
        yield


@contextlib.contextmanager
def _append_output(log: str) -> Iterator[None]:
    """Appends to a log what Python and libraries print."""
    kept = [(number, os.dup(number)) for number in (1, 2)]
    with open_log(Path(log)) as file:
        for number, _ in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def _call(
    function: TaskFunction, arguments: Sequence[str], setup: Setup
) -> str:
    """Calls a function; returns why it failed, in one line."""
    try:
        _check_process(setup)
        function([function.__module__, *arguments])
    except (Exception, SystemExit) as error:
        explained = explain_failure(error)
        if explained is None:
            traceback.print_exc()
            line = traceback.format_exception_only(error)[-1]
        else:
            line = explained[0]
            print(f"error: {line}", file=sys.stderr)
        return " ".join(line.split())[:_MAX_REASON]
    return ""


def _check_process(setup: Setup) -> None:
    """RunError if this process has other code, or lacks its GPU."""
    import_plugins(setup.plugins)
    if setup.code and compute_code_version(setup.plugins) != setup.code:
        raise RunError("the code of the worker is not the code of the sweep")
    if setup.gpus is None and not list_gpus():
        raise RunError("the job sees none of the GPUs that --job_gpus asks for")
