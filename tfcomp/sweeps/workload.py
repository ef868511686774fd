"""One loop for sweeps and searches: run the items that are not finished."""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.models.model_rules import choose_threads
from tfcomp.storage.files import make_subfolder, refuse_links, write_text
from tfcomp.storage.output_folders import check_run_folders, lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task
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

    @abstractmethod
    def is_finished(self, item: Any) -> bool:
        """Returns True if all results of an item are there."""

    @abstractmethod
    def make_call(self, item: Any) -> tuple[RunConfig, TaskFunction, list[str]]:
        """Returns a run like those of the item, and the call for a worker."""

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
        _say(f"{work.kind} {name} ({number} of {len(works)})")
        failed = run_missing(work, options)
        lines += [f"{name} {line}" for line in work.describe_failures(failed)]
    return lines


def run_missing(work: Workload, options: SchedulerOptions) -> dict[str, str]:
    """Runs missing items; returns the reasons of failures, by name."""
    if (work.folder / FLAGS_FILE).exists():
        rule = f"--run_name must name a sweep, {work.folder} is a single run"
        raise RunError(rule)
    # Tasks write into the folders in it; a trial checks its own.
    refuse_links(work.folder, depth=2)
    failures: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        pool = None
        if work.list_missing():
            pool = stack.enter_context(Pool(options, work.folder))
        logs = make_subfolder(work.folder, "logs")
        stack.enter_context(lock_folder(work.folder))
        write_text(work.folder / work.flags_name, work.flags)
        try:
            if pool is not None:
                _run(work, pool, logs, failures)
                pool.close()  # reports need no workers
        finally:  # also if it is told to stop
            work.write_tables(failures)
        work.write_reports()
    return failures


def _run(
    work: Workload, pool: Pool, logs: Path, failures: dict[str, str]
) -> None:
    """Runs the missing items, and adds those that fail to `failures`."""
    # Looked for again: from now on the folder is locked.
    missing = {item.name: item for item in work.list_missing()}
    done = len(work.items) - len(missing)
    kept = f", {done} are finished already" if done else ""
    count = f"{len(missing)} {work.noun} to run, {pool.workers} at a time"
    _say(f"{count}{kept}; logs in {logs}")
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


class Progress:
    """Prints a line for every trial or search that ends."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._failed = total, 0, 0
        self._start = time.monotonic()

    def report(self, name: str, seconds: float, reason: str) -> None:
        """Prints the item that ended, and the reason if it failed."""
        self._done += 1
        self._failed += bool(reason)
        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * (self._total - self._done)
        rest = f"about {format_seconds(left)} left"
        if not left:
            rest = f"all in {format_seconds(elapsed)}"
        failed = f"{self._failed} failed, " if self._failed else ""
        why = f"  FAILED: {reason}" if reason else ""
        place = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        took = format_seconds(seconds)
        _say(f"{place} {name}  {took}{why}  ({failed}{rest})")


def _say(line: str) -> None:
    print(line, flush=True)  # log files are up to date


def format_seconds(seconds: float) -> str:
    """Formats a duration as `48 s`, `12 min` or `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
