"""A sweep: its trials, their calls, its tables; how missing trials are run.

The files in the folder of a sweep are listed in docs/sweeps.md. Threshold
searches run as sweeps do: both are a `Workload`.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.errors import RunError
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.datasets.coverage import list_regions
from tfcomp.metrics.registry import is_measured
from tfcomp.models.registry import choose_threads
from tfcomp.storage import files
from tfcomp.storage.files import lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE, is_finished
from tfcomp.sweeps import grid
from tfcomp.sweeps.pool import Pool, open_pool
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import Task, TaskFunction, run_trial

FAILURE = ".failure"  # ends the name of a file with the reason of a failure
PAUSE = 20  # between writes of the tables, in times of a write
MAX_DRAWN = 40  # settings that a figure can tell apart


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
        """Checks whether all results of an item are there.

        Args:
            item: One of `items`.
        """

    @abstractmethod
    def make_call(self, item: Any) -> tuple[RunConfig, TaskFunction, list[str]]:
        """Makes the call for a worker.

        Args:
            item: One of `items`.

        Returns:
            A run like the item's, and a function with its arguments.
        """

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

    def describe_result(self, item: Any) -> str:
        """Describes an item that has ended in one line.

        Args:
            item: One of `items`.
        """
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
    names = {item.name for item in options.select_shard(work.items)}
    opened: contextlib.AbstractContextManager[Pool | None]
    opened = contextlib.nullcontext()
    if any(item.name in names for item in work.list_missing()):
        opened = open_pool(options, work.folder)

    failures: dict[str, str] = {}
    logs = work.folder / "logs"
    with contextlib.ExitStack() as locks:
        with opened as pool:
            files.make_folder(logs)
            if not options.shard:  # parts run at the same time
                locks.enter_context(lock_folder(work.folder))
            files.write_text(work.folder / work.flags_name, work.flags)
            for name in names:
                (logs / f"{name}{FAILURE}").unlink(missing_ok=True)
            try:
                if pool is not None:
                    _run_items(work, names, pool, failures)
            finally:  # also if it is told to stop
                _write_tables(work)
        # Without workers, for which others may wait.
        with lock_folder(logs, wait=True):
            work.write_reports()

    lines = []
    for item in work.items:
        if item.name in failures:
            lines.append(f"{item.describe()}: {failures[item.name]}")
    return lines


def _run_items(
    work: Workload,
    names: set[str],
    pool: Pool,
    failures: dict[str, str],
) -> None:
    """Runs the missing ones of some items, and notes which of them fail."""
    # Looked for again: from now on the folder is locked.
    items = {}
    for item in work.list_missing():
        if item.name in names:
            items[item.name] = item
    logs = work.folder / "logs"
    line = f"{len(items)} {work.noun} to run, {pool.workers} at a time"
    print(f"{line}; logs in {logs}", flush=True)

    tasks = [_make_task(work, item) for item in items.values()]
    start = time.monotonic()
    due = start  # when tables are written again
    for number, (name, reason, seconds) in enumerate(pool.run(tasks), 1):
        item = items[name]
        if not reason and not work.is_finished(item):
            reason = "wrote no results (is the folder shared with workers?)"
        line = f"[{number}/{len(items)}] {work.describe_result(item)}"
        line += f"  {format_seconds(seconds)}"
        if reason:
            line += f"  FAILED: {reason}"
            failures[name] = reason
            files.write_text(logs / f"{name}{FAILURE}", reason)

        now = time.monotonic()
        passed = now - start
        left = passed / number * (len(items) - number)
        rest = f"about {format_seconds(left)} left"
        if number == len(items):
            rest = f"all in {format_seconds(passed)}"
        print(f"{line}  ({rest})", flush=True)
        if now >= due:
            _write_tables(work)
            due = time.monotonic() + PAUSE * (time.monotonic() - now)


def _make_task(work: Workload, item: Any) -> Task:
    config, function, arguments = work.make_call(item)
    return Task(
        name=item.name,
        function=function,
        arguments=arguments,
        log=work.folder / "logs" / f"{item.name}.log",
        plugins=config.plugins,
        replicas=config.training.num_replicas,
        max_threads=choose_threads(config),
    )


def _write_tables(work: Workload) -> None:
    """Writes what is finished, in turn with other shards.

    A shard reads and writes under one lock, so that the last one to write has
    the results of all.
    """
    logs = work.folder / "logs"
    with lock_folder(logs, wait=True):
        failures = {}
        for path in logs.glob(f"*{FAILURE}"):
            failures[path.stem] = files.read_text(path)
        work.write_tables(failures)


def format_seconds(seconds: float) -> str:
    """Formats a duration as `48 s`, `12 min` or `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Sweep(Workload):
    """The trials of a sweep, in the order of the grid."""

    kind = "sweep"
    noun = "trials"
    flags_name = "sweep.flags"

    items: Sequence[grid.Trial]
    settings: grid.SweepSettings

    def is_finished(self, trial: grid.Trial) -> bool:
        """Checks whether all files of a trial are there and undamaged.

        Args:
            trial: One of `items`.
        """
        if not is_finished(trial.path):
            return False
        return not self.settings.measure or is_measured(trial.path)

    def make_call(
        self, trial: grid.Trial
    ) -> tuple[RunConfig, TaskFunction, list[str]]:
        """Makes the call of `run_trial` for a trial.

        Args:
            trial: One of `items`.
        """
        arguments = run_flags.list_flag_lines(trial.config)
        if self.settings.measure:
            arguments.append("--measure")
        return trial.config, run_trial, arguments

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes `trials.csv`: settings, seeds, scores, reasons of failures.

        Args:
            failures: Why trials failed, by their names.
        """
        rows = [self._make_row(trial, failures) for trial in self.items]
        files.write_csv(self.folder / "trials.csv", rows)

    def _make_row(
        self,
        trial: grid.Trial,
        failures: Mapping[str, str],
    ) -> dict[str, Any]:
        run, reasons = grid.read_result(trial)
        status = "missing"
        if trial.name in failures:
            status = "failed"
        elif run is not None:
            status = "finished"
        elif reasons:
            status = "damaged"
        row = {
            "trial": trial.name,
            "status": status,
            "reason": failures.get(trial.name, "; ".join(reasons)),
            **trial.setting,
            "seed": trial.seed,
        }
        for name, score in grid.list_scores(run).items():
            if score == score:  # no NaN
                row[name] = score
        return row

    def write_reports(self) -> None:
        """Writes summary, comparisons, figures and HParams."""
        # A late import: an interrupted command should not wait for it.
        from tfcomp.sweeps import sweep_page

        # Until they are complete, reports can be wrong.
        files.remove(self.folder / sweep_page.PAGE)
        files.remove(self.folder / "figures")
        numbers = sweep_page.compute_numbers(
            self.items,
            self.settings.pairs,
            has_coverage=bool(self.settings.coverage),
        )
        tables = {"summary": numbers.summary, "paired": numbers.paired}
        for name, table in tables.items():
            path = self.folder / f"{name}.csv"
            if len(table):
                files.write_table(path, table)
            else:
                path.unlink(missing_ok=True)
        sweep_page.write_experiment(self.folder, self.items, numbers.paths)
        if len({str(trial.setting) for trial in self.items}) > MAX_DRAWN:
            print(f"no figures of more than {MAX_DRAWN} settings")
        elif numbers.runs:
            sweep_page.write_page(self.folder, numbers)


def define_flags() -> flags.FlagValues:
    """Defines the flags of a run, of a sweep, and of its workers."""
    values = run_flags.make_flags(grid.GRID, run_flags.define_run_flags())
    # A hundred trials need no pictures and no SavedModels, which take half of
    # the time of a short run outside training.
    values.set_default("pictures", False)
    values.set_default("export", False)
    run_flags.define_settings(grid.SweepSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_sweep(values: dict[str, Any]) -> Sweep:
    """Makes the sweep that the flags describe; writes nothing.

    Args:
        values: Parsed flags of `define_flags`.

    Raises:
        ConfigError: A combination of the grid breaks a rule.
    """
    settings = grid.SweepSettings.from_flags(values)
    config = make_config(values)
    specs = list(values["grid"])
    if settings.coverage:
        regions = ",".join(list_regions(settings.coverage))
        specs.append(f"region={regions}")
    points = grid.parse_grid(specs, settings.seeds, config.plugins)
    trials, notes = grid.make_trials(values, points, settings.all_seeds)
    for note in notes:
        print(note)

    text = f"# code version: {compute_code_version(config.plugins)}\n"
    text += run_flags.format_flags(config)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    for line in lines + run_flags.list_flag_lines(settings):
        text += f"{line}\n"
    return Sweep(Path(config.run_dir), trials, text, settings)
