"""Runs tasks on a Dask cluster: of this machine, of jobs, or of others."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfcomp.config.errors import ConfigError, first_line
from tfcomp.storage.code_version import OVERRIDE, compute_code_version
from tfcomp.sweeps import clusters
from tfcomp.sweeps.scheduler_options import (
    SchedulerOptions,
    count_job_threads,
    count_threads,
    list_gpus,
)
from tfcomp.sweeps.worker_task import KEY, Setup, TaskFunction, run_task

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 5
_WAIT_SECONDS = 5.0  # for a task to end, before workers are counted


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


class Outcome(NamedTuple):
    """The end of a task."""

    name: str
    reason: str  # of its failure, in one line; empty if it did not fail
    seconds: float = 0.0


class Pool:
    """Workers for several batches of tasks, in a `with` statement.

    When the block is left, for whatever reason, workers of this machine and
    jobs end at once, and workers of others stop the tasks after their epoch.
    The folder receives the keys and the output of jobs.
    """

    def __init__(
        self, options: SchedulerOptions, folder: Path = Path()
    ) -> None:
        self._options, self._folder = options, folder
        self._threads = options.threads
        self._gpus: tuple[str, ...] = ()
        self._exits = contextlib.ExitStack()
        self.workers = options.workers  # tasks at a time

    def __enter__(self) -> Pool:
        """Starts workers; ConfigError or RunError if that is not possible."""
        options = self._options
        if options.scheduler:
            self._client = self._exits.enter_context(self._connect())
            self.workers = self._count_workers()
            return self
        if options.cluster:
            opened = clusters.start_job_cluster(options, self._folder)
            threads = count_job_threads(options)
        else:
            self._gpus = tuple(list_gpus())
            self.workers = options.workers or len(self._gpus) or 1
            if self._gpus and self.workers > len(self._gpus):
                rule = f"must be at most {len(self._gpus)}, one for each GPU"
                raise ConfigError("workers", rule, self.workers)
            opened = clusters.start_local_cluster(self.workers)
            threads = count_threads(self.workers)
        self._threads = options.threads or threads
        self._client = self._exits.enter_context(opened)
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers, for which others may wait."""
        self._exits.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Runs tasks, the first ones first; yields outcomes as they end."""
        if self._options.cluster:
            clusters.submit_jobs(self._options, self._client.cluster)
        batch = uuid.uuid4().hex[:8]  # keys of an earlier start may live on
        waiting = deque(tasks)
        running: dict[Future, tuple[str, float]] = {}
        outcomes: list[Outcome] = []
        try:
            while waiting or running or outcomes:
                # A task for each worker: tasks that wait on a worker would
                # count its deaths as their own.
                while waiting and len(running) < max(1, self.workers):
                    task = waiting.popleft()
                    future = self._submit(task, batch)
                    running[future] = task.name, time.monotonic()
                yield from outcomes  # while tasks run on all workers
                ended = _wait(list(running)) if running else []
                outcomes = [_end(f, *running.pop(f)) for f in ended]
                if self._options.scheduler:  # its workers come and go
                    self.workers = self._count_workers()
        finally:
            self._client.cancel(list(running), force=True)

    def _submit(self, task: Task, batch: str) -> Future:
        threads = self._threads
        if task.max_threads and not self._options.threads:
            threads = min(threads or task.max_threads, task.max_threads)
        is_checked = OVERRIDE not in os.environ
        setup = Setup(
            folder=os.getcwd(),
            code=compute_code_version(task.plugins) if is_checked else "",
            plugins=task.plugins,
            replicas=task.replicas,
            threads=threads,
            gpus=self._gpus,
        )
        return self._client.submit(
            run_task,
            task.function,
            list(task.arguments),
            str(task.log.absolute()),
            setup,
            key=(KEY, task.name, batch),
            pure=False,
        )

    def _count_workers(self) -> int:
        try:
            return len(self._client.nthreads())
        except (OSError, RuntimeError, ValueError):
            return 0  # the scheduler is gone, too

    def _connect(self) -> Client:
        from distributed import Client

        clusters.silence_dask()
        address = self._options.scheduler
        try:
            return Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, TypeError, ValueError) as error:
            # Dask raises TypeError for a protocol that is not set up here,
            # as tls:// without its certificates.
            rule = "must be the address of a running Dask scheduler"
            raise ConfigError("scheduler", rule, address) from error


def _wait(running: Sequence[Future]) -> list[Future]:
    """Waits until a task ends; returns those that have ended, if any."""
    from distributed import wait

    with contextlib.suppress(TimeoutError, CancelledError):
        wait(running, _WAIT_SECONDS, return_when="FIRST_COMPLETED")
    return [future for future in running if future.done()]


def _end(future: Future, name: str, start: float) -> Outcome:
    """Returns how a task has ended, with the reason of a failure."""
    from distributed import KilledWorker

    reason = ""
    if future.cancelled():
        reason = "cancelled, or its scheduler is gone"
    elif future.status != "finished":
        error = future.exception()
        reason = first_line(error)
        if isinstance(error, KilledWorker):
            deaths = error.allowed_failures + 1
            reason = f"its worker died {deaths} times (see its log)"
    future.release()
    return Outcome(name, reason, time.monotonic() - start)
