"""Commands on a Dask cluster, each a process that dies with its worker.

    with Pool(SchedulerOptions(workers=2)) as pool:
        for outcome in pool.run(tasks):
            ...

By default the cluster is made of processes of this machine; the address of
any Dask scheduler puts the work there. Its workers must see the same folders
under the same names and have the same tfcomp installed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.sweeps.guarded_process import Job
from tfcomp.sweeps.guarded_process import run_job
from tfcomp.sweeps.resources import count_threads
from tfcomp.sweeps.resources import list_gpus
from tfcomp.sweeps.resources import pin_threads

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future

_CONNECT_SECONDS = 5
_LOCAL = {
    # Dask limits the threads of its workers and changes how they return
    # memory, which our processes would inherit.
    "distributed.nanny.pre-spawn-environ": {},
    # A worker that was killed says little about its task.
    "distributed.scheduler.allowed-failures": 10,
    # What Dask watches many times a second, for dashboards and tasks of
    # milliseconds, costs more than all the rest when tasks take minutes.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


@dataclass(frozen=True)
class Task:
    """A command to run.

    Attributes:
        name: What it is called in its outcome; unique among the tasks.
        command: Program and arguments. Where the program is the Python that
            runs us, a worker elsewhere takes its own.
        log: File that the output is appended to.
    """

    name: str
    command: list[str]
    log: Path


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        name: Name of the task.
        returncode: Exit status; negative is the signal that killed it.
        reason: Why it failed, in one line; empty if it did not.
        seconds: Time that it took.
    """

    name: str
    returncode: int
    reason: str
    seconds: float


@dataclass(frozen=True)
class SchedulerOptions:
    """Where tasks run.

    Attributes:
        workers: Tasks at a time on this machine; 0 is one for each GPU, or
            one.
        scheduler: Address of a Dask scheduler; empty starts workers here.
        threads: Threads of a task; 0 shares the cores among the workers
            (with a scheduler: as the environment of its workers says).
        gpus: GPUs of this machine, one task to each; None finds them. With a
            scheduler whoever starts its workers assigns GPUs.
    """

    workers: int = 0
    scheduler: str = ""
    threads: int = 0
    gpus: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "threads"):
            if getattr(self, name) < 0:
                rule = "must be at least 0"
                raise ConfigError(name, rule, getattr(self, name))
        if self.scheduler and self.workers:
            rule = "must be left out with --scheduler, which has its workers"
            raise ConfigError("workers", rule, self.workers)


def run_tasks(
    tasks: Sequence[Task], options: SchedulerOptions
) -> Iterator[Outcome]:
    """Runs tasks, yields how each ended, in the order of their ends.

    Raises:
        ConfigError: If the scheduler does not answer.
    """
    with Pool(options) as pool:
        yield from pool.run(tasks)


def check_scheduler(options: SchedulerOptions) -> None:
    """Whether the scheduler of the options, if there is one, answers.

    Raises:
        ConfigError: If it does not.
    """
    if options.scheduler:
        with Pool(options):
            pass


class Pool:
    """Workers for several batches of tasks, in a `with` statement.

    When the block is left, for whatever reason, tasks that still run are
    killed.

    Args:
        options: Where tasks run.

    Attributes:
        workers: Number of workers; with a scheduler, those it has now.
    """

    def __init__(self, options: SchedulerOptions) -> None:
        self._options = options
        self._gpus: tuple[str, ...] = ()
        self._threads = options.threads
        self.workers = options.workers

    def __enter__(self) -> Pool:
        if self._options.scheduler:
            self._connect()
        else:
            self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Runs tasks, the first ones first; yields outcomes as they end."""
        from distributed import as_completed

        batch = uuid.uuid4().hex[:8]  # keys of an earlier start may live on
        futures = {
            self._client.submit(
                run_job,
                self._make_job(task),
                key=f"{task.name}-{batch}",
                priority=-index,
                pure=False,
            ): task.name
            for index, task in enumerate(tasks)
        }
        try:
            for future in as_completed(list(futures)):
                yield make_outcome(futures.pop(future), future)
        finally:
            self._client.cancel(list(futures), force=True)

    def _make_job(self, task: Task) -> Job:
        program, *arguments = task.command
        own = program == sys.executable
        return Job(
            command=(None if own else program, *arguments),
            log=str(task.log.absolute()),
            folder=os.getcwd(),
            environment=pin_threads(self._threads),
            gpus=self._gpus,
        )

    def _start(self) -> None:
        import dask
        from distributed import Client
        from distributed import LocalCluster

        gpus = self._options.gpus
        self._gpus = tuple(list_gpus()) if gpus is None else tuple(gpus)
        self.workers = self._options.workers or len(self._gpus) or 1
        self._threads = self._options.threads or count_threads(self.workers)
        with dask.config.set(_LOCAL), hold_back_interrupts():
            self._cluster = LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,  # it would count the workers, not the tasks
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            self._client = Client(self._cluster)

    def _connect(self) -> None:
        from distributed import Client

        self._cluster = None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        address = self._options.scheduler
        try:
            self._client: Client = Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            rule = "must be the address of a running Dask scheduler"
            raise ConfigError("scheduler", rule, address) from error
        self.workers = len(self._client.scheduler_info()["workers"])


@contextlib.contextmanager
def hold_back_interrupts() -> Iterator[None]:
    """Threads and processes that start in the block ignore Ctrl-C for good.

    A terminal sends it to our workers as well, which would die of it with a
    traceback before we could stop them.
    """
    # Started later, this helper of multiprocessing would let them through.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def make_outcome(name: str, future: Future) -> Outcome:
    """What a task's future says about its end."""
    if future.status == "finished":
        return Outcome(name, *future.result())
    if future.status == "cancelled":
        return Outcome(name, 1, "cancelled, or its scheduler is gone", 0.0)
    error = future.exception()
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return Outcome(name, 1, text, 0.0)
