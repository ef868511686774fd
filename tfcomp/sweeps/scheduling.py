"""Runs tasks on a Dask cluster: of this machine, of jobs, or of others.

Workers elsewhere must see the same folders under the same names and have the
same tfcomp installed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError, first_line
from tfcomp.storage.code_version import OVERRIDE, compute_code_version
from tfcomp.sweeps.job_cluster import (
    JobWatch,
    count_job_threads,
    start_job_cluster,
)
from tfcomp.sweeps.local_cluster import (
    replace_lost_workers,
    silence_dask,
    start_cluster,
)
from tfcomp.sweeps.scheduler_options import (
    SchedulerOptions,
    count_threads,
    list_gpus,
)
from tfcomp.sweeps.sweep_progress import format_seconds, say
from tfcomp.sweeps.worker_task import KEY, Setup, TaskFunction, run_task

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 5
_COUNT_SECONDS = 2.0  # between two counts of the workers
_REMIND_SECONDS = 60  # between two notes that there is no worker
_START_SECONDS = 10  # that a worker may take to start, before the first note
_FETCH_SECONDS = 5  # for the few bytes of an outcome


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
class Outcome:
    """The end of a task."""

    name: str
    reason: str  # of its failure, in one line; empty if it did not fail
    seconds: float = 0.0


def check_scheduler(options: SchedulerOptions) -> None:
    """ConfigError if the scheduler of the options, if any, does not answer."""
    if options.scheduler:
        with Pool(options):
            pass


class Pool:
    """Workers for several batches of tasks, in a `with` statement.

    When the block is left, for whatever reason, workers of this machine and
    jobs end at once, and workers of others stop the tasks after their epoch.
    The folder receives the keys and the output of jobs.
    """

    def __init__(
        self, options: SchedulerOptions, folder: Path = Path()
    ) -> None:
        self._options = options
        self._folder = folder
        self._gpus: tuple[str, ...] | None = ()
        self._threads = options.threads
        self._jobs: JobWatch | None = None
        self._tend: Callable[[], None] = lambda: None
        self._exits = contextlib.ExitStack()
        self._most = options.workers
        self.workers = self._told = options.workers  # when they were counted

    def __enter__(self) -> Pool:
        """Starts workers; ConfigError or RunError if that is not possible."""
        if self._options.scheduler:
            self._client = self._exits.enter_context(self._connect())
            self.workers = self._told = self._count_workers()
        elif self._options.cluster:
            self._start_jobs()
        else:
            self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers, for which others may wait."""
        self._exits.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Runs tasks, the first ones first; yields outcomes as they end.

        Without a worker, or a job in the queue, for the time that the options
        allow, the rest fails. RunError if the first job is refused.
        """
        if self._jobs is not None:
            self.workers = self._told = 0  # so far
            self._jobs.start()
        batch = uuid.uuid4().hex[:8]  # keys of an earlier start may live on
        waiting = deque(tasks)
        futures: dict[Future, str] = {}
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

        def submit() -> int:
            """Gives Dask a task for each worker; counts what is left.

            Tasks that wait on a worker would count its deaths as their own.
            """
            while waiting and len(futures) < self._count_slots():
                task = waiting.popleft()
                future = self._client.submit(
                    run_task,
                    task.function,
                    list(task.arguments),
                    str(task.log.absolute()),
                    self._make_setup(task),
                    key=(KEY, task.name, batch),
                    pure=False,
                )
                futures[future] = task.name
                future.add_done_callback(ended.put)
            return len(futures) + len(waiting)

        try:
            yield from self._wait(ended, futures, submit)
            left = [*futures.values(), *(task.name for task in waiting)]
            if left:
                reason = self._explain_absence()
                say(f"{reason}: giving up {len(left)} of {len(tasks)}")
                yield from (Outcome(name, reason) for name in left)
        finally:
            self._client.cancel(list(futures), force=True)

    def _wait(
        self,
        ended: queue.SimpleQueue[Future],
        futures: dict[Future, str],
        submit: Callable[[], int],
    ) -> Iterator[Outcome]:
        """Takes out futures as they end, all unless the workers are gone."""
        timeout = self._options.worker_timeout or float("inf")
        counted = seen = time.monotonic()
        reminded = counted - _REMIND_SECONDS + _START_SECONDS
        while submit():
            with contextlib.suppress(queue.Empty):
                future = ended.get(timeout=_COUNT_SECONDS)
                try:
                    outcome = make_outcome(futures[future], future)
                except TimeoutError:  # lost with its worker, made again
                    ended.put(future)
                else:
                    del futures[future]
                    future.release()
                    submit()  # before the outcome is used, which may take long
                    yield outcome
            now = time.monotonic()
            if now - counted < _COUNT_SECONDS:
                continue
            counted = now
            self._watch_workers()
            is_queued = self._jobs is not None and self._jobs.waiting
            reminded = now if self.workers else reminded
            seen = now if self.workers or is_queued else seen
            if now - seen > timeout or (self._has_problem() and seen < now):
                return
            if now - reminded > _REMIND_SECONDS:
                reminded = now
                waited = format_seconds(now - seen)
                nobody = f"no worker for {waited}, waiting (--worker_timeout)"
                say("jobs wait in the queue" if is_queued else nobody)

    def _count_slots(self) -> int:
        """Tasks at a time; others' workers may become more or fewer."""
        return self._most or max(1, self.workers)

    def _has_problem(self) -> bool:
        return self._jobs is not None and bool(self._jobs.problem)

    def _explain_absence(self) -> str:
        if self._jobs is not None and self._jobs.problem:
            return self._jobs.problem
        seconds = format_seconds(self._options.worker_timeout)
        return f"no worker for {seconds} (--worker_timeout)"

    def _watch_workers(self) -> None:
        """Counts the workers, and has lost ones replaced.

        A count is told that stays: a worker may just begin a new process.
        """
        before, self.workers = self.workers, self._count_workers()
        if self._told != self.workers == before:
            noun = "worker" if self.workers == 1 else "workers"
            say(f"{self.workers} {noun} now, {self._told} before")
            self._told = self.workers
        self._tend()

    def _count_workers(self) -> int:
        try:
            return len(self._client.nthreads())
        except (OSError, RuntimeError, ValueError):
            return 0  # the scheduler is gone, too

    def _make_setup(self, task: Task) -> Setup:
        threads = self._threads
        if task.max_threads and not self._options.threads:
            threads = min(threads or task.max_threads, task.max_threads)
        is_checked = OVERRIDE not in os.environ
        return Setup(
            folder=os.getcwd(),
            code=compute_code_version(task.plugins) if is_checked else "",
            plugins=task.plugins,
            replicas=task.replicas,
            threads=threads,
            gpus=self._gpus,
            trials_per_gpu=self._options.trials_per_gpu,
            isolated=task.name if self._options.isolate else "",
        )

    def _start(self) -> None:
        share = self._options.trials_per_gpu
        self._gpus = tuple(list_gpus())
        if share > 1 and not self._gpus:
            rule = "must be 1 on a machine without a GPU"
            raise ConfigError("trials_per_gpu", rule, share)
        most = len(self._gpus) * share
        self.workers = self._most = self._options.workers or most or 1
        self._told = self.workers
        if self._gpus and self.workers > most:
            rule = f"must be at most {most}, --trials_per_gpu for each GPU"
            raise ConfigError("workers", rule, self.workers)
        self._threads = self._options.threads or count_threads(self.workers)
        cluster, self._client = self._exits.enter_context(
            start_cluster(self.workers)
        )
        self._tend = lambda: replace_lost_workers(cluster)

    def _start_jobs(self) -> None:
        options = self._options
        self._gpus = None if options.job_gpus else ()
        self._threads = options.threads or count_job_threads(options)
        cluster, self._client = self._exits.enter_context(
            start_job_cluster(options, self._folder)
        )
        self._jobs = JobWatch(options, cluster)
        self._tend = self._jobs.tend

    def _connect(self) -> Client:
        from distributed import Client

        silence_dask()
        address = self._options.scheduler
        try:
            return Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, TypeError, ValueError) as error:
            # Dask raises TypeError for a protocol that is not set up here,
            # as tls:// without its certificates.
            rule = "must be the address of a running Dask scheduler"
            raise ConfigError("scheduler", rule, address) from error


def make_outcome(name: str, future: Future) -> Outcome:
    """Reads the outcome of a task; TimeoutError if its worker has died."""
    from distributed import KilledWorker

    if future.cancelled():
        return Outcome(name, "cancelled, or its scheduler is gone")
    error = future.exception(_FETCH_SECONDS)
    if error is None:
        return Outcome(name, *future.result(_FETCH_SECONDS))
    if isinstance(error, KilledWorker):
        deaths = error.allowed_failures + 1
        return Outcome(name, f"its worker died {deaths} times (see its log)")
    return Outcome(name, f"{type(error).__name__}: {first_line(error)}")
