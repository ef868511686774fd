"""One loop for sweeps and searches: run the items that are not finished.

Finished items are never run again, so that an interrupted command continues
where it stopped.
"""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.models.model_rules import choose_threads
from tfcomp.storage.files import make_subfolder, refuse_links, write_text
from tfcomp.storage.output_folders import check_run_folders, lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task
from tfcomp.sweeps.sweep_progress import Progress, say
from tfcomp.sweeps.worker_task import TaskFunction

PAUSE = 20  # between writes of the tables, in times of a write


@dataclass(frozen=True)
class Workload(ABC):
    """The tasks of one command in one folder, one for each item."""

    folder: Path
    items: Sequence[Any]  # each has a unique `name` and a method `describe`
    flags: str  # the resolved ones, a flagfile that repeats the command
    kind: ClassVar[str]  # the work, for messages
    noun: ClassVar[str]  # the items, in the plural
    flags_name: ClassVar[str]  # of the file with the flags

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @abstractmethod
    def is_finished(self, item: Any) -> bool:
        """Returns True if all results of an item are there."""

    @abstractmethod
    def make_call(self, item: Any) -> tuple[TaskFunction, list[str]]:
        """Returns the function that a worker calls, and its arguments."""

    @abstractmethod
    def get_config(self, item: Any) -> RunConfig:
        """Returns the run of an item, or a run like those that it makes."""

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

    def describe_failures(self, failures: Mapping[str, str]) -> list[str]:
        """Returns a line for each failed item, given the reasons by name."""
        return [
            f"{item.describe()}: {failures[item.name]}"
            for item in self.items
            if item.name in failures
        ]


def run_missing(work: Workload, options: SchedulerOptions) -> dict[str, str]:
    """Runs the items that are not finished, and writes tables and reports.

    If none is missing, no worker is started.

    Returns:
        The reasons of the items that failed, by name.

    Raises:
        ConfigError: No workers can be started.
        RunError: The same; or the folder is a run, in use, or not writable.
    """
    _check_folder(work.folder)
    failures: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        pool = None
        if work.list_missing():
            pool = stack.enter_context(Pool(options, work.folder))
        stack.enter_context(_claim(work))
        write_text(work.folder / work.flags_name, work.flags)
        try:
            if pool is not None:
                _run(work, pool, failures)
                pool.close()  # reports need no workers
        finally:  # also if it is told to stop
            work.write_tables(failures)
        work.write_reports()
    return failures


def run_as_asked(
    make: Callable[[dict[str, Any]], Any], values: dict[str, Any]
) -> tuple[Any, dict[str, str]]:
    """Makes the work that flags describe, runs it, and returns its failures."""
    options, work = SchedulerOptions.from_flags(values), make(values)
    check_run_folders(values)
    return work, run_missing(work, options)


def run_all(works: Sequence[Workload], options: SchedulerOptions) -> list[str]:
    """Runs several in turn; returns a line for each item that failed."""
    lines = []
    for number, work in enumerate(works, 1):
        name = work.folder.name
        say(f"{work.kind} {name} ({number} of {len(works)})")
        failed = run_missing(work, options)
        lines += [f"{name} {line}" for line in work.describe_failures(failed)]
    return lines


def _check_folder(folder: Path) -> None:
    if (folder / FLAGS_FILE).exists():
        rule = f"--run_name must name a sweep, {folder} is a single run"
        raise RunError(rule)
    # Tasks write into the folders in it; a trial checks its own.
    refuse_links(folder, depth=2)


def _claim(work: Workload) -> IO[bytes]:
    """Creates the folder and locks it until the returned file is closed."""
    _check_folder(work.folder)
    make_subfolder(work.folder, work.logs.name)
    return lock_folder(work.folder)


def _run(work: Workload, pool: Pool, failures: dict[str, str]) -> None:
    """Runs the missing items, and adds those that fail to `failures`."""
    # Looked for again: from now on the folder is locked.
    missing = {item.name: item for item in work.list_missing()}
    done = len(work.items) - len(missing)
    kept = f", {done} are finished already" if done else ""
    say(
        f"{len(missing)} {work.noun} to run, {pool.workers} at a time{kept}; "
        f"logs in {work.logs}"
    )
    progress = Progress(len(missing))
    tasks = [_make_task(work, item) for item in missing.values()]
    due = 0.0
    for outcome in pool.run(tasks):
        item, reason = missing[outcome.name], outcome.reason
        if not reason and not work.is_finished(item):
            reason = "wrote no results (is the folder shared with workers?)"
        if reason:
            failures[item.name] = reason
        progress.report(work.describe_result(item), outcome.seconds, reason)
        if (start := time.monotonic()) >= due:
            work.write_tables(failures)
            end = time.monotonic()
            due = end + PAUSE * (end - start)


def _make_task(work: Workload, item: Any) -> Task:
    config = work.get_config(item)
    function, arguments = work.make_call(item)
    return Task(
        item.name,
        function,
        arguments,
        work.logs / f"{item.name}.log",
        config.plugins,
        config.training.num_replicas,
        choose_threads(config),
    )
