"""Runs tasks on the workers of a Dask cluster, one at a time on each.

A task is bound to a free worker, and never waits on one that is busy. So when a
worker dies, this counts for the task that ran on it, and for no other.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.hashes import OVERRIDE, compute_code_version
from tfcomp.sweeps import clusters, scheduler_options
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import (
    NewProcessNeeded,
    Setup,
    Task,
    TaskStopped,
    run_task,
)

if TYPE_CHECKING:
    from distributed import Client, Future

MAX_DEATHS = 4  # of workers that ran a task, which then has failed
MAX_JOB_DEATHS = 11  # a trial may outlive several jobs
POLL_SECONDS = 1.0  # between looks for workers that died
SCALE_SECONDS = 30.0  # between looks for jobs that ended
PATIENCE_SECONDS = 300.0  # for a worker of this machine to start again


class Outcome(NamedTuple):
    """The end of a task."""

    name: str
    reason: str  # of its failure, in one line; empty if it did not fail
    seconds: float = 0.0


class _Started(NamedTuple):
    """A task on a worker."""

    task: Task
    future: Future


@contextlib.contextmanager
def open_pool(
    options: SchedulerOptions, folder: Path = Path()
) -> Iterator[Pool]:
    """Opens workers for a block.

    Args:
        options: The flags that say where they are, and how many.
        folder: The folder of the sweep, for the output of jobs.

    Raises:
        ConfigError: Flags do not fit this machine, or no scheduler answers.
        RunError: No worker can be started.
    """
    if options.scheduler:
        with clusters.connect(options.scheduler) as client:
            workers = len(clusters.list_workers(client))
            yield Pool(client, options, workers, options.threads)
    elif options.cluster:
        cores = clusters.describe_job(options, folder)["cores"]
        threads = options.threads or cores
        with clusters.start_job_cluster(options, folder) as client:
            yield Pool(client, options, options.workers, threads)
    else:
        gpus = scheduler_options.list_gpus()
        workers = options.workers or len(gpus) or 1
        if gpus and workers > len(gpus):
            rule = f"must be at most {len(gpus)}, one for each GPU "
            rule += "(CUDA_VISIBLE_DEVICES=0,0 lets two share GPU 0)"
            raise ConfigError("workers", rule, workers)
        threads = options.threads or scheduler_options.count_threads(workers)
        with clusters.start_local_cluster(workers) as client:
            yield Pool(client, options, workers, threads, tuple(gpus))


@dataclass
class Pool:
    """Workers for batches of tasks."""

    client: Client
    options: SchedulerOptions
    workers: int  # tasks at a time, when the pool was opened
    threads: int  # of a task; 0 if the environment of its worker decides
    gpus: tuple[str, ...] = ()

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Runs tasks, the first ones first; yields outcomes as they end.

        Args:
            tasks: With unique names. If the iterator is closed, they stop.

        Raises:
            RunError: The scheduler, or all workers of this machine, are gone.
        """
        waiting = deque(tasks)
        running: dict[str, _Started] = {}  # by the address of the worker
        starts: dict[str, float] = {}
        deaths = Counter[str]()
        outcomes: list[Outcome] = []
        self._last_seen = self._last_scaled = time.monotonic()
        try:
            while waiting or running or outcomes:
                alive = self._list_workers(is_needed=bool(waiting))
                free = [address for address in alive if address not in running]
                while waiting and free:
                    task = waiting.popleft()
                    address = free.pop(0)
                    running[address] = self._submit(task, address)
                    starts.setdefault(task.name, time.monotonic())
                if self.options.cluster and free:
                    # An idle job should not hold its cores until the end.
                    self.client.retire_workers(free)

                yield from outcomes  # while tasks run on all workers
                outcomes = []

                _wait_for_one(running)
                alive = self._list_workers(is_needed=False)
                for address, (task, future) in list(running.items()):
                    if not future.done() and address in alive:
                        continue
                    del running[address]
                    reason = self._end(task, future, address, deaths)
                    if reason is None:
                        waiting.appendleft(task)
                        continue
                    seconds = time.monotonic() - starts[task.name]
                    outcomes.append(Outcome(task.name, reason, seconds))
        finally:
            futures = [started.future for started in running.values()]
            self.client.cancel(futures, force=True)

    def _list_workers(self, is_needed: bool) -> list[str]:
        """Lists the workers that are there, and asks for lost ones again."""
        addresses = clusters.list_workers(self.client)
        now = time.monotonic()
        if addresses:
            self._last_seen = now

        is_local = not (self.options.cluster or self.options.scheduler)
        if is_local and now - self._last_seen > PATIENCE_SECONDS:
            raise RunError("no worker is left: repeat the command")

        is_due = now - self._last_scaled > SCALE_SECONDS
        if self.options.cluster and is_needed and is_due:
            self._last_scaled = now
            self.client.cluster.scale(jobs=self.options.workers)
        return addresses

    def _submit(self, task: Task, address: str) -> _Started:
        """Starts a task on a worker."""
        threads = self.threads
        if task.max_threads and not self.options.threads:
            threads = min(threads or task.max_threads, task.max_threads)
        code = ""
        if OVERRIDE not in os.environ:
            code = compute_code_version(task.plugins)
        setup = Setup(
            folder=os.getcwd(),
            code=code,
            plugins=task.plugins,
            replicas=task.replicas,
            threads=threads,
            gpus=self.gpus,
        )
        future = self.client.submit(
            run_task,
            task.function,
            list(task.arguments),
            str(task.log.absolute()),
            setup,
            pure=False,
            workers=[address],
        )
        return _Started(task, future)

    def _end(
        self, task: Task, future: Future, address: str, deaths: Counter[str]
    ) -> str | None:
        """Returns why a task failed, "" if it did not, None to run it again."""
        from distributed import KilledWorker

        if future.status == "finished":
            future.release()
            return ""

        error: BaseException | None = None
        if future.status == "error":
            error = future.exception()
        future.cancel(force=True)
        if isinstance(error, TaskStopped):
            return None
        if isinstance(error, NewProcessNeeded):
            self.client.restart_workers([address], raise_for_error=False)
            return None
        if error is not None and not isinstance(error, KilledWorker):
            return first_line(error)

        # The worker is gone, or the scheduler has lost the task with it.
        deaths[task.name] += 1
        most = MAX_JOB_DEATHS if self.options.cluster else MAX_DEATHS
        if deaths[task.name] < most:
            return None
        return f"its worker died {most} times (see its log)"


def _wait_for_one(running: dict[str, _Started]) -> None:
    """Waits until a task ends, or for a moment."""
    from distributed import wait

    if not running:
        time.sleep(POLL_SECONDS)
        return
    futures = [started.future for started in running.values()]
    with contextlib.suppress(TimeoutError, CancelledError):
        wait(futures, POLL_SECONDS, "FIRST_COMPLETED")
