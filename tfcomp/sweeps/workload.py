"""Runs the missing items of sweeps and searches on a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.run_config import RunConfig
from tfcomp.models.registry import choose_threads
from tfcomp.storage.code_version import OVERRIDE, compute_code_version
from tfcomp.storage.files import make_subfolder, refuse_links, write_text
from tfcomp.storage.output_folders import lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE
from tfcomp.sweeps import clusters, jobs, scheduler_options
from tfcomp.sweeps.progress import Progress
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import KEY, Setup, Task, TaskFunction, run_task

if TYPE_CHECKING:
    from distributed import Client, Future

PAUSE = 20  # between writes of the tables, in times of a write
_WAIT_SECONDS = 5.0  # for a task to end, before workers are counted


class Outcome(NamedTuple):
    """The end of a task."""

    name: str
    reason: str  # of its failure, in one line; empty if it did not fail
    seconds: float = 0.0


@dataclass(frozen=True)
class Workload(ABC):
    """The tasks of one command in one folder, one for each item."""

    folder: Path
    items: Sequence[Any]  # each has a unique `name` and a method `describe`
    flags: str  # the resolved ones, a flagfile that repeats the command
    kind: ClassVar[str]  # the work, for messages
    noun: ClassVar[str]  # the items, in the plural
    flags_name: ClassVar[str]  # of the file with the flags

    @abstractmethod
    def is_finished(self, item: Any) -> bool:
        """Returns True if all results of an item are there."""

    @abstractmethod
    def make_call(self, item: Any) -> tuple[RunConfig, TaskFunction, list[str]]:
        """Returns a run of the item's kind, and the call for a worker."""

    @abstractmethod
    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the results so far; called now and then, and at the end."""

    @abstractmethod
    def write_reports(self) -> None:
        """Writes the reports on all items, once."""

    def list_missing(self) -> list[Any]:
        """Returns the items that are not finished, in the order to run them."""
        return [item for item in self.items if not self.is_finished(item)]

    def describe_result(self, item: Any) -> str:
        """Describes an item that has ended in one line."""
        return item.describe()


def run_missing(work: Workload, options: SchedulerOptions) -> list[str]:
    """Runs missing items; returns a line for each that failed."""
    if (work.folder / FLAGS_FILE).exists():
        rule = f"--run_name must name a sweep, {work.folder} is a single run"
        raise RunError(rule)
    # Tasks write into the folders in it; a trial checks its own.
    refuse_links(work.folder, depth=2)
    failures: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        is_done = not work.list_missing()
        pool = None if is_done else open_pool(options, work.folder)
        # Reports need no workers, for which others may wait.
        with pool or contextlib.nullcontext() as workers:
            logs = make_subfolder(work.folder, "logs")
            stack.enter_context(lock_folder(work.folder))
            write_text(work.folder / work.flags_name, work.flags)
            try:
                if workers is not None:
                    _run(work, workers, logs, failures)
            finally:  # also if it is told to stop
                work.write_tables(failures)
        work.write_reports()
    return [
        f"{item.describe()}: {failures[item.name]}"
        for item in work.items
        if item.name in failures
    ]


def _run(
    work: Workload, pool: Pool, logs: Path, failures: dict[str, str]
) -> None:
    """Runs the missing items, and adds those that fail to `failures`."""
    # Looked for again: from now on the folder is locked.
    missing = {item.name: item for item in work.list_missing()}
    done = len(work.items) - len(missing)
    kept = f", {done} are finished already" if done else ""
    count = f"{len(missing)} {work.noun} to run, {pool.workers} at a time"
    print(f"{count}{kept}; logs in {logs}", flush=True)
    tasks = []
    for name, item in missing.items():
        config, function, arguments = work.make_call(item)
        setup = config.plugins, config.training.num_replicas
        log, most = logs / f"{name}.log", choose_threads(config)
        tasks.append(Task(name, function, arguments, log, *setup, most))
    progress, due = Progress(len(missing)), 0.0
    for name, reason, seconds in pool.run(tasks):
        item = missing[name]
        if not reason and not work.is_finished(item):
            reason = "wrote no results (is the folder shared with workers?)"
        if reason:
            failures[name] = reason
        progress.report(work.describe_result(item), seconds, reason)
        if (start := time.monotonic()) >= due:
            work.write_tables(failures)
            end = time.monotonic()
            due = end + PAUSE * (end - start)


@contextlib.contextmanager
def open_pool(
    options: SchedulerOptions, folder: Path = Path()
) -> Iterator[Pool]:
    """Opens workers for a block; ConfigError or RunError if impossible."""
    workers, gpus = options.workers, tuple[str, ...]()
    opened: contextlib.AbstractContextManager[Client]
    if options.scheduler:
        opened, threads = clusters.connect(options.scheduler), 0
    elif options.cluster:
        opened = jobs.start_job_cluster(options, folder)
        threads = scheduler_options.describe_jobs(options, folder)["cores"]
    else:
        gpus = tuple(scheduler_options.list_gpus())
        workers = workers or len(gpus) or 1
        if gpus and workers > len(gpus):
            rule = f"must be at most {len(gpus)}, one for each GPU "
            rule += "(CUDA_VISIBLE_DEVICES=0,0 lets two share GPU 0)"
            raise ConfigError("workers", rule, workers)
        opened = clusters.start_local_cluster(workers)
        threads = scheduler_options.count_threads(workers)
    with opened as client:
        workers = workers or clusters.count_workers(client)
        threads = options.threads or threads
        yield Pool(client, options, folder, workers, threads, gpus)


@dataclass
class Pool:
    """Workers for batches of tasks."""

    client: Client
    options: SchedulerOptions
    folder: Path
    workers: int  # tasks at a time
    threads: int  # of a task; 0 if the environment of its worker decides
    gpus: tuple[str, ...] = ()

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Runs tasks, the first ones first; yields outcomes as they end."""
        from distributed import wait

        watch = None
        if self.options.cluster:
            cluster = self.client.cluster
            watch = jobs.JobWatch(self.options, cluster, self.folder)
        batch = uuid.uuid4().hex[:8]  # keys of an earlier start may live on
        waiting = deque(tasks)
        running: dict[Future, tuple[Task, float]] = {}
        outcomes: list[Outcome] = []
        try:
            while waiting or running or outcomes:
                # A task for each worker: tasks that wait on a worker would
                # count its deaths as their own.
                while waiting and len(running) < max(1, self.workers):
                    task = waiting.popleft()
                    running[self._submit(task, batch)] = task, time.monotonic()
                yield from outcomes  # while tasks run on all workers
                if running:
                    with contextlib.suppress(TimeoutError, CancelledError):
                        wait(list(running), _WAIT_SECONDS, "FIRST_COMPLETED")
                ended = [future for future in running if future.done()]
                if watch:
                    watch.check([task.log for task, _ in running.values()])
                outcomes = [_end(f, *running.pop(f)) for f in ended]
                if self.options.scheduler:  # its workers come and go
                    self.workers = clusters.count_workers(self.client)
        finally:
            self.client.cancel(list(running), force=True)

    def _submit(self, task: Task, batch: str) -> Future:
        threads = self.threads
        if task.max_threads and not self.options.threads:
            threads = min(threads or task.max_threads, task.max_threads)
        is_checked = OVERRIDE not in os.environ
        setup = Setup(
            folder=os.getcwd(),
            code=compute_code_version(task.plugins) if is_checked else "",
            plugins=task.plugins,
            replicas=task.replicas,
            threads=threads,
            gpus=self.gpus,
        )
        return self.client.submit(
            run_task,
            task.function,
            list(task.arguments),
            str(task.log.absolute()),
            setup,
            key=(KEY, task.name, batch),
            pure=False,
        )


def _end(future: Future, task: Task, start: float) -> Outcome:
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
    return Outcome(task.name, reason, time.monotonic() - start)
