"""Runs the missing items of sweeps and searches, and writes their tables."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.models.registry import choose_threads
from tfcomp.storage.files import lock_folder, make_folder, write_text
from tfcomp.storage.run_folder import FLAGS_FILE
from tfcomp.sweeps.pool import Pool, open_pool
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import Task, TaskFunction

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
        """Checks whether all results of an item are there."""

    @abstractmethod
    def make_call(self, item: Any) -> tuple[RunConfig, TaskFunction, list[str]]:
        """Makes the call for a worker: a run like the item's, and a function
        with its arguments."""

    @abstractmethod
    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the results so far; called now and then, and at the end.

        Args:
            failures: Why items failed, by their names.
        """

    @abstractmethod
    def write_reports(self) -> None:
        """Writes the reports on all items, once."""

    def list_missing(self) -> list[Any]:
        """Lists the items that are not finished, in the order to run them."""
        return [item for item in self.items if not self.is_finished(item)]

    def read_failures(self, names: Set[str]) -> dict[str, str]:
        """Reads why items failed from the table that is there.

        Args:
            names: Of the items to look for.
        """
        return {}

    def describe_result(self, item: Any) -> str:
        """Describes an item that has ended in one line."""
        return item.describe()


def run_missing(work: Workload, options: SchedulerOptions) -> list[str]:
    """Runs the missing items of a sweep or a search, and writes its tables.

    Args:
        work: All items; with `--shard` a part of them is run.
        options: Where they run.

    Returns:
        A line for each item that failed.

    Raises:
        ConfigError: The flags do not fit this machine.
        RunError: Another command works in the folder, or no worker starts.
    """
    if (work.folder / FLAGS_FILE).exists():
        rule = f"--run_name must name a sweep, {work.folder} is a single run"
        raise RunError(rule)
    batch = _Batch(work, options)
    opened: contextlib.AbstractContextManager[Pool | None]
    opened = contextlib.nullcontext()
    if batch.list_missing():
        opened = open_pool(options, work.folder)
    with contextlib.ExitStack() as locks:
        with opened as pool:
            make_folder(work.folder / "logs")
            if not options.shard:  # parts run at the same time
                locks.enter_context(lock_folder(work.folder))
            write_text(work.folder / work.flags_name, work.flags)
            try:
                if pool is not None:
                    batch.run(pool)
            finally:  # also if it is told to stop
                batch.write_tables()
        # Without workers, for which others may wait.
        batch.write_reports()
    return batch.list_failures()


class _Batch:
    """The items that one command runs: all, or a shard."""

    def __init__(self, work: Workload, options: SchedulerOptions) -> None:
        selected = options.select_shard(work.items)
        self._work = work
        self._names = {item.name for item in selected}
        self._logs = work.folder / "logs"
        self._failures: dict[str, str] = {}

    def list_missing(self) -> list[Any]:
        missing = self._work.list_missing()
        return [item for item in missing if item.name in self._names]

    def run(self, pool: Pool) -> None:
        """Runs the missing items, and notes which of them fail."""
        # Looked for again: from now on the folder is locked.
        missing = {item.name: item for item in self.list_missing()}
        line = f"{len(missing)} {self._work.noun} to run"
        line += f", {pool.workers} at a time"
        if done := len(self._names) - len(missing):
            line += f", {done} are finished already"
        print(f"{line}; logs in {self._logs}", flush=True)

        tasks = [self._make_task(item) for item in missing.values()]
        progress = Progress(len(missing))
        due = 0.0  # when tables are written again
        for name, reason, seconds in pool.run(tasks):
            item = missing[name]
            if not reason and not self._work.is_finished(item):
                reason = "wrote no results (is the folder shared with workers?)"
            if reason:
                self._failures[name] = reason
            progress.report(self._work.describe_result(item), seconds, reason)

            start = time.monotonic()
            if start >= due:
                self.write_tables()
                end = time.monotonic()
                due = end + PAUSE * (end - start)

    def _make_task(self, item: Any) -> Task:
        config, function, arguments = self._work.make_call(item)
        return Task(
            name=item.name,
            function=function,
            arguments=arguments,
            log=self._logs / f"{item.name}.log",
            plugins=config.plugins,
            replicas=config.training.num_replicas,
            max_threads=choose_threads(config),
        )

    def write_tables(self) -> None:
        """Writes what is finished, in turn with other shards.

        A shard reads and writes under one lock, so that the last one to write
        has the results of all.
        """
        work = self._work
        with lock_folder(self._logs, wait=True):
            others = {item.name for item in work.items} - self._names
            work.write_tables(work.read_failures(others) | self._failures)

    def write_reports(self) -> None:
        """Writes reports on what is finished, in turn with other shards."""
        with lock_folder(self._logs, wait=True):
            self._work.write_reports()

    def list_failures(self) -> list[str]:
        """Describes each item that failed in one line."""
        return [
            f"{item.describe()}: {self._failures[item.name]}"
            for item in self._work.items
            if item.name in self._failures
        ]


class Progress:
    """Prints a line for every trial or search that ends.

    Args:
        total: How many there are to run.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._failed = 0
        self._start = time.monotonic()

    def report(self, name: str, seconds: float, reason: str) -> None:
        """Prints the item that has ended, and how much is left.

        Args:
            name: Describes the item and its result.
            seconds: The time it took.
            reason: Why it failed; empty if it did not.
        """
        self._done += 1
        place = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        line = f"{place} {name}  {format_seconds(seconds)}"
        if reason:
            self._failed += 1
            line += f"  FAILED: {reason}"

        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * (self._total - self._done)
        rest = f"all in {format_seconds(elapsed)}"
        if left:
            rest = f"about {format_seconds(left)} left"
        if self._failed:
            rest = f"{self._failed} failed, {rest}"
        print(f"{line}  ({rest})", flush=True)


def format_seconds(seconds: float) -> str:
    """Formats a duration as `48 s`, `12 min` or `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
