"""Runs a task, such as a trial, inside of a Dask worker.

Plugins, threads and GPU cannot change in a process: they are its `Setup`. A
task with another setup, or after a failure, asks for a new process.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import RunError, explain_failure
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.plugins import import_plugins
from tfcomp.config.process import (
    IsStopped,
    StopRequested,
    start_tensorflow,
    stop_when,
)
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags, make_flags, parse_flags
from tfcomp.models.registry import make_checked_dataset
from tfcomp.storage.files import make_folder, open_log

if TYPE_CHECKING:
    from distributed import Worker

MAX_BYTES = 3 * 10**9  # of a process; a larger one is replaced
_MAX_REASON = 300  # characters
# Every library that a trial computes with reads one of these.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
TaskFunction = Callable[[list[str]], object]


@dataclass(frozen=True)
class Task:
    """A function to call on a worker, in a process with a setup."""

    name: str  # unique among the tasks
    function: TaskFunction  # workers import it by its name
    arguments: Sequence[str]
    log: Path  # the output is appended to it
    plugins: str = ""
    replicas: int = 0
    max_threads: int = 0  # that it can use; 0 is any number


@dataclass(frozen=True)
class Setup:
    """The state of a process that its first task decides."""

    folder: str  # to work in
    code: str  # the version of the code of the sweep
    plugins: str = ""
    replicas: int = 0  # among which a CPU is divided
    threads: int = 0  # 0 leaves the number to the environment
    gpus: tuple[str, ...] = ()  # one a worker; else the environment decides


class NewProcessNeeded(Exception):
    """The task was not run: it needs a new process of the worker."""


class TaskStopped(Exception):
    """The worker ends, and the task has stopped at a checkpoint."""


class _Process:
    """The state of this process."""

    setup: Setup | None = None
    is_spent = False
    lock = threading.Lock()  # a worker of another cluster may have threads


def run_task(task: Task, setup: Setup) -> None:
    """Calls the function of a task in a Dask worker, with its output in a log.

    Args:
        task: Its function gets the name of its module and the arguments, as of
            a command line.
        setup: What the process must be set up for.

    Raises:
        RunError: The function failed; the message says why in one line.
        NewProcessNeeded: This process has another setup, or is spent.
        TaskStopped: The worker was told to end.
    """
    from distributed import get_worker

    worker = get_worker()
    is_stopped = _make_stop_check(worker)
    with _Process.lock:
        _prepare_process(setup, worker)
        try:
            with stop_when(is_stopped), _append_output(task.log):
                reason = _call(task, setup)
        except StopRequested as error:
            raise TaskStopped from error
        _Process.is_spent = bool(reason)
    if reason:
        raise RunError(reason)


def _make_stop_check(worker: Worker) -> IsStopped:
    """Makes a check whether the running task is to stop on this worker."""
    from distributed import Status

    key = worker.get_current_task()
    ends = (Status.closing_gracefully, Status.closing, Status.closed)

    def is_stopped() -> bool:
        # Dask cancels a task also when the client that wanted it has died.
        task = worker.state.tasks.get(key)
        is_unwanted = task is None or task.state == "cancelled"
        return is_unwanted or worker.status in ends

    return is_stopped


def _prepare_process(setup: Setup, worker: Worker) -> None:
    """Sets a new process up, and refuses one that cannot run the task."""
    import psutil

    if _Process.setup is None:
        _set_up(setup, worker)
    is_large = psutil.Process().memory_info().rss > MAX_BYTES
    if is_large or _Process.is_spent or _Process.setup != setup:
        if worker.nanny is None:
            rule = "the worker cannot start a new process"
            raise RunError(f"{rule}: start it with --nanny")
        raise NewProcessNeeded


def _set_up(setup: Setup, worker: Worker) -> None:
    import threadpoolctl

    os.chdir(setup.folder)
    if setup.gpus:
        _choose_gpu(setup.gpus, worker)
    if setup.threads:
        limits = dict.fromkeys(THREAD_VARIABLES, str(setup.threads))
        os.environ.update(limits)
        import numpy  # noqa: F401  its library must be there to be limited

        threadpoolctl.threadpool_limits(setup.threads)
    _separate_random()
    _Process.setup = setup


def _choose_gpu(gpus: Sequence[str], worker: Worker) -> None:
    """Shows one GPU to TensorFlow, by the number of the worker."""
    gpu = gpus[int(worker.name) % len(gpus)]
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    if gpus.count(gpu) > 1:  # the first would take all memory
        os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")


def _separate_random() -> None:
    """Gives Dask's threads a generator of their own.

    Keras seeds initial weights from `random`, which they draw from as well.
    """
    for name, module in list(sys.modules.items()):
        is_dask = name.startswith(("dask.", "distributed.", "tornado."))
        if is_dask and getattr(module, "random", None) is random:
            vars(module)["random"] = random.Random()


@contextlib.contextmanager
def _append_output(log: Path) -> Iterator[None]:
    """Appends output of Python and of libraries to a log."""
    make_folder(log.parent)
    with open_log(log) as file, contextlib.ExitStack() as stack:
        for number in (1, 2):
            copy = os.dup(number)
            stack.callback(os.close, copy)
            stack.callback(os.dup2, copy, number)
            os.dup2(file.fileno(), number)
        stack.callback(sys.stdout.flush)
        stack.callback(sys.stderr.flush)
        yield


def _call(task: Task, setup: Setup) -> str:
    """Calls a function; returns why it failed, in one line."""
    try:
        import_plugins(task.plugins)
        if compute_code_version(task.plugins) != setup.code:
            raise RunError(
                "the code of the worker is not the code of the sweep"
            )
        task.function([task.function.__module__, *task.arguments])
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


def run_trial(argv: list[str]) -> None:
    """Trains and scores a run that is not finished.

    Args:
        argv: A name, then the flags of the run. `--measure` also adds the
            measures of the claims to `metrics.json`.
    """
    flags = make_flags({"measure": (False, "")}, define_run_flags())
    settings = parse_flags(argv[1:], flags)
    measure = settings.pop("measure")
    config = make_config(settings | {"resume": True})
    dataset = make_checked_dataset(config)
    for note in dataset.list_notes():
        print(note)
    with start_tensorflow():
        import keras

        from tfcomp.training.experiment import train_and_evaluate

    # Layers are numbered through the life of a process, and their names are
    # saved: the names must not depend on earlier trials.
    keras.backend.clear_session()
    train_and_evaluate(config, dataset)
    if measure:
        from tfcomp.metrics.run_analysis import measure_run
        from tfcomp.training.prepared_models import list_traced

        measure_run(Path(config.run_dir), list_traced())
