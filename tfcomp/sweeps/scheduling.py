"""Commands on a Dask cluster, each a process that dies with its worker.

Workers are processes of this machine, jobs of a cluster, or those of any Dask
scheduler. Elsewhere they must see the same folders under the same names and
have the same tfcomp installed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.sweeps.job import run_job
from tfcomp.sweeps.job_cluster import count_job_threads, start_job_cluster
from tfcomp.sweeps.job_queue import JobQueue
from tfcomp.sweeps.local_cluster import (
    replace_lost_workers,
    silence_dask,
    start_cluster,
)
from tfcomp.sweeps.scheduler_options import (
    SchedulerOptions,
    count_threads,
    list_gpus,
    pin_threads,
)
from tfcomp.sweeps.sweep_progress import format_seconds, say

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

_CONNECT_SECONDS = 5
_COUNT_SECONDS = 2.0  # how often the workers are counted
# Tasks that Dask knows at a time: each takes 20 kB, and to forget thousands
# takes it more than a minute.
_KNOWN = 1000
_TELL_SECONDS = 60  # how often it is said that there is none
_FETCH_SECONDS = 5  # for the few bytes of an outcome


@dataclass(frozen=True)
class Task:
    """A command to run."""

    name: str  # unique among the tasks
    command: list[str]  # a worker elsewhere has its own Python
    log: Path  # the output is appended to it
    # Commands `-m MODULE` of the same setup run in turn in a process that stays
    # warm (see `warm_process`); None is a process of its own.
    setup: str | None = None
    max_threads: int = 0  # that it can use; 0 is any number


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    name: str
    returncode: int  # negative is the signal that killed it
    reason: str  # why it failed, in one line; empty if it did not
    seconds: float


def check_scheduler(options: SchedulerOptions) -> None:
    """ConfigError if the scheduler of the options, if any, does not answer."""
    if options.scheduler:
        with Pool(options):
            pass


class Pool:
    """Workers for several batches of tasks, in a `with` statement.

    When the block is left, for whatever reason, tasks that still run are
    killed, and jobs are cancelled. The folder gets the keys and output of jobs.
    """

    def __init__(
        self, options: SchedulerOptions, folder: Path = Path()
    ) -> None:
        self._options = options
        self._folder = folder
        self._gpus: tuple[str, ...] | None = ()
        self._threads = options.threads
        self._cluster: LocalCluster | None = None
        self._jobs: JobQueue | None = None
        self._exits = contextlib.ExitStack()
        self.workers = options.workers  # when they were last counted

    def __enter__(self) -> Pool:
        """Starts workers; ConfigError or RunError if that is not possible."""
        if self._options.scheduler:
            self._client = self._exits.enter_context(self._connect())
            self.workers = self._count_workers()
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
        allow, what is left fails. RunError if the first job is refused.
        """
        if self._jobs is not None:
            self.workers = 0  # so far
            self._jobs.start(len(tasks))
        batch = uuid.uuid4().hex[:8]  # keys of an earlier start may live on
        waiting = deque(enumerate(tasks))
        futures: dict[Future, str] = {}
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

        def submit() -> int:
            """Hands out as many as Dask shall know; counts what is left."""
            while waiting and len(futures) < max(_KNOWN, 2 * self.workers):
                index, task = waiting.popleft()
                future = self._client.submit(
                    run_job,
                    *self._list_arguments(task),
                    # The first part says that all are alike: Dask keeps alike
                    # tasks until a worker is free, others it hands out at once.
                    key=("task", task.name, batch),
                    priority=-index,
                    pure=False,
                )
                futures[future] = task.name
                future.add_done_callback(ended.put)
            return len(futures) + len(waiting)

        try:
            yield from self._wait(ended, futures, submit)
            left = [*futures.values(), *(task.name for _, task in waiting)]
            if left:
                seconds = format_seconds(self._options.worker_timeout)
                problem = self._get_problem()
                reason = problem or f"no worker for {seconds}"
                flag = "" if problem else " (--worker_timeout)"
                say(f"{reason}{flag}: giving up what is left")
                for name in left:
                    yield Outcome(name, 1, reason, 0.0)
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
        told = float("-inf")  # without a worker at the start: at once
        while submit():
            with contextlib.suppress(queue.Empty):
                future = ended.get(timeout=_COUNT_SECONDS)
                try:
                    outcome = make_outcome(futures[future], future)
                except TimeoutError:  # lost with its worker, made again
                    ended.put(future)
                else:
                    del futures[future]
                    yield outcome
            now = time.monotonic()
            if not submit() or now - counted < _COUNT_SECONDS:
                continue
            counted = now
            alive = self._watch_workers(submit())
            told = now if self.workers else told
            seen = now if alive else seen
            if now - seen > timeout or (self._get_problem() and not alive):
                return
            if now - told > _TELL_SECONDS:
                told = now
                if self._are_jobs_waiting():
                    say("jobs wait in the queue of the cluster")
                else:
                    waited = format_seconds(now - seen)
                    say(f"no worker for {waited}, waiting (--worker_timeout)")

    def _get_problem(self) -> str:
        """Why there will be no worker any more, empty if there may be."""
        return self._jobs.problem if self._jobs is not None else ""

    def _are_jobs_waiting(self) -> bool:
        return self._jobs is not None and self._jobs.waiting

    def _watch_workers(self, tasks: int) -> bool:
        """Whether there are workers, or jobs that may become some."""
        before, self.workers = self.workers, self._count_workers()
        if self.workers != before:
            noun = "worker" if self.workers == 1 else "workers"
            say(f"{self.workers} {noun} now, {before} before")
        if self._cluster is not None:
            replace_lost_workers(self._cluster)
        if self._jobs is not None:
            self._jobs.adjust(tasks)
        return self._are_jobs_waiting() or self.workers > 0

    def _count_workers(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except (OSError, RuntimeError, ValueError):
            return 0  # the scheduler is gone, too

    def _list_arguments(self, task: Task) -> tuple[object, ...]:
        """What `run_job` is called with."""
        program, *arguments = task.command
        command = (None if program == sys.executable else program, *arguments)
        threads = self._threads
        if task.max_threads and not self._options.threads:
            threads = min(threads or task.max_threads, task.max_threads)
        return (
            command,
            str(task.log.absolute()),
            os.getcwd(),
            pin_threads(threads),
            self._gpus,
            self._options.trials_per_gpu,
            None if self._options.isolate else task.setup,
        )

    def _start(self) -> None:
        share = self._options.trials_per_gpu
        self._gpus = tuple(list_gpus())
        if share > 1 and not self._gpus:
            rule = "must be 1 on a machine without a GPU"
            raise ConfigError("trials_per_gpu", rule, share)
        most = len(self._gpus) * share
        self.workers = self._options.workers or most or 1
        if self._gpus and self.workers > most:
            rule = f"must be at most {most}, --trials_per_gpu for each GPU"
            raise ConfigError("workers", rule, self.workers)
        self._threads = self._options.threads or count_threads(self.workers)
        self._cluster, self._client = self._exits.enter_context(
            start_cluster(self.workers)
        )

    def _start_jobs(self) -> None:
        options = self._options
        self._gpus = None if options.job_gpus else ()
        self._threads = options.threads or count_job_threads(options)
        cluster, self._client = self._exits.enter_context(
            start_job_cluster(options, self._folder)
        )
        self._jobs = JobQueue(
            options.cluster, cluster, options.trials_per_job, options.workers
        )

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
    """What a task's future says, TimeoutError if its worker has died."""
    if future.cancelled():
        return Outcome(name, 1, "cancelled, or its scheduler is gone", 0.0)
    error = future.exception(_FETCH_SECONDS)
    if error is None:
        return Outcome(name, *future.result(_FETCH_SECONDS))
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return Outcome(name, 1, text, 0.0)
