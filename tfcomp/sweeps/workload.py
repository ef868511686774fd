"""One loop for sweeps and studies of many processes: run what is missing.

Whatever has finished is never run again, so a command that was interrupted
goes on where it stopped.
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
from tfcomp.models.model_registry import choose_threads
from tfcomp.storage.files import make_subfolder, refuse_links, write_text
from tfcomp.storage.output_folders import check_run_folders, lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task
from tfcomp.sweeps.sweep_progress import Progress, say
from tfcomp.sweeps.worker_task import TaskFunction

PAUSE = 19  # of what a write of the tables takes, before the next one


@dataclass(frozen=True)
class Workload(ABC):
    """Processes that one command runs in one folder, one for each item."""

    folder: Path
    items: Sequence[Any]  # each has a unique `name`, and `describe` for people
    flags: str  # the resolved ones, a flagfile that repeats the command
    kind: ClassVar[str]  # what the command runs, for messages
    noun: ClassVar[str]  # what its items are, in the plural
    flags_name: ClassVar[str]  # of the file with the flags

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @abstractmethod
    def is_finished(self, item: Any) -> bool:
        """Whether an item has written all that is wanted of it."""

    @abstractmethod
    def make_call(self, item: Any) -> tuple[TaskFunction, list[str]]:
        """The function that a worker calls for an item, and its arguments."""

    @abstractmethod
    def get_config(self, item: Any) -> RunConfig:
        """The run of an item, or a run like those that it makes."""

    @abstractmethod
    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes what there is so far; called as items end (see `Paced`)."""

    @abstractmethod
    def write_reports(self) -> None:
        """Writes what is made once, when nothing runs any more."""

    def list_missing(self) -> list[Any]:
        """The items that are not finished, in the order to run them in."""
        return [item for item in self.items if not self.is_finished(item)]

    def describe_result(self, item: Any) -> str:
        """An item that has ended, in one line."""
        return item.describe()

    def describe_failures(self, failures: Mapping[str, str]) -> list[str]:
        """A line for each item that failed, given the reasons by name."""
        return [
            f"{item.describe()}: {failures[item.name]}"
            for item in self.items
            if item.name in failures
        ]


class Paced:
    """Does what takes the longer the more items there are, but not for each."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._next = 0.0

    def __call__(self) -> None:
        """Does it, unless that took a twentieth of the time since or more."""
        start = time.monotonic()
        if start >= self._next:
            self._action()
            end = time.monotonic()
            self._next = end + PAUSE * (end - start)


def run_missing(work: Workload, options: SchedulerOptions) -> dict[str, str]:
    """Runs the items that are not finished, and writes tables and reports.

    Returns the reasons of the items that failed, by name. If nothing is
    missing, no worker is started. ConfigError and RunError as of `Pool`, and if
    the folder is that of a run, in use or not to be written.
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
    """What `make` makes of the flags, run, and the reasons of what failed."""
    options, work = SchedulerOptions.from_flags(values), make(values)
    check_run_folders(values)
    return work, run_missing(work, options)


def run_all(works: Sequence[Workload], options: SchedulerOptions) -> list[str]:
    """Runs what is missing of several in turn; a line for each that failed.

    ConfigError and RunError as `run_missing`.
    """
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
    try:
        make_subfolder(work.folder, work.logs.name)
        return lock_folder(work.folder)
    except OSError as error:
        raise RunError(f"--log_dir must be writable: {error}") from error


def _run(work: Workload, pool: Pool, failures: dict[str, str]) -> None:
    """Runs the missing items, and adds those that fail to `failures`."""
    # Looked for again, since nobody else can finish one from now on.
    missing = {item.name: item for item in work.list_missing()}
    done = len(work.items) - len(missing)
    kept = f", {done} are finished already" if done else ""
    say(
        f"{len(missing)} {work.noun} to run, {pool.workers} at a time{kept}; "
        f"logs in {work.logs}"
    )
    work.write_tables(failures)
    progress = Progress(len(missing))
    tasks = [_make_task(work, item) for item in missing.values()]
    update = Paced(lambda: work.write_tables(failures))
    for outcome in pool.run(tasks):
        item, reason = missing[outcome.name], outcome.reason
        if not reason and not work.is_finished(item):
            reason = "wrote no results (is the folder shared with workers?)"
        if reason:
            failures[item.name] = reason
        progress.report(work.describe_result(item), outcome.seconds, reason)
        update()


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
