"""A sweep: its trials, their calls, its tables; how missing trials are run.

The files in the folder of a sweep are listed in docs/sweeps.md. Threshold
searches run in the same way as sweeps: both are a `Workload`, whose items are
trials or searches.
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
from tfcomp.datasets.splits import list_regions
from tfcomp.metrics.registry import is_measured
from tfcomp.models.registry import choose_threads
from tfcomp.storage import files
from tfcomp.storage.files import lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE, SWEEP_FLAGS, is_finished
from tfcomp.sweeps import grid
from tfcomp.sweeps.pool import Pool, SchedulerOptions, open_pool
from tfcomp.sweeps.worker_task import Task, TaskFunction, run_trial

FAILURE = ".failure"  # ends the name of a file with the reason of a failure
# Between two writes of the tables lies this number of times the duration of a
# write, so that a sweep spends 5 % of its time on tables.
PAUSE = 20
MAX_DRAWN = 40  # settings that a figure can tell apart


@dataclass(frozen=True)
class Workload(ABC):
    """The tasks of one command in one folder, one for each item.

    Attributes:
        folder: Where all results are written.
        items: Each has a unique `name` and a method `describe`.
        flags: The text of a flagfile that repeats the command.
        kind: The name of the work in messages, as "sweep".
        noun: The name of its items in the plural, as "trials".
        flags_name: The name of the flagfile in the folder.
    """

    folder: Path
    items: Sequence[Any]
    flags: str
    kind: ClassVar[str]
    noun: ClassVar[str]
    flags_name: ClassVar[str]

    @abstractmethod
    def is_finished(self, item: Any) -> bool:
        """Checks whether all results of an item are there.

        Args:
            item: One of `items`.
        """

    @abstractmethod
    def make_call(self, item: Any) -> tuple[RunConfig, TaskFunction, list[str]]:
        """Makes the call by which a worker runs an item.

        Args:
            item: One of `items`.

        Returns:
            A run with the plugins, replicas and threads that the item needs;
            the function; and its arguments.
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
        """Describes, in one line, an item that has ended.

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
        ConfigError: If the flags do not fit this machine.
        RunError: If another command works in the folder, or no worker starts.
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
            if not options.shard:  # shards run at the same time
                locks.enter_context(lock_folder(work.folder))
            files.write_text(work.folder / work.flags_name, work.flags)
            for name in names:
                (logs / f"{name}{FAILURE}").unlink(missing_ok=True)
            try:
                if pool is not None:
                    _run_items(work, names, pool, failures)
            finally:  # also after Ctrl-C and other requests to stop
                _write_tables(work)
        # The pool is closed before: other commands may wait for its workers.
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
    """Runs the items of these names that are missing.

    Args:
        work: All items.
        names: The names of the items of this shard.
        pool: The workers.
        failures: Reasons by name, to which items that fail are added.
    """
    # Listed again, since another command may have finished items before the
    # folder was locked.
    items = {}
    for item in work.list_missing():
        if item.name in names:
            items[item.name] = item
    logs = work.folder / "logs"
    line = f"{len(items)} {work.noun} to run, {pool.workers} at a time"
    print(f"{line}; logs in {logs}", flush=True)

    tasks = [_make_task(work, item) for item in items.values()]
    start = time.monotonic()
    tables_due = start
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
        progress = _describe_progress(number, len(items), now - start)
        print(f"{line}  ({progress})", flush=True)
        if now >= tables_due:
            _write_tables(work)
            duration = time.monotonic() - now
            tables_due = time.monotonic() + PAUSE * duration


def _describe_progress(num_ended: int, num_items: int, passed: float) -> str:
    """Describes the time that is left, or at the end the time of all items.

    Args:
        num_ended: The number of items that have ended, at least 1.
        num_items: The number of all items.
        passed: Seconds since the first item was started.
    """
    if num_ended == num_items:
        return f"all in {format_seconds(passed)}"
    left = passed / num_ended * (num_items - num_ended)
    return f"about {format_seconds(left)} left"


def _make_task(work: Workload, item: Any) -> Task:
    """Makes the task of an item, which writes its output to a log."""
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
    """Writes the tables of all items that are finished.

    Shards take turns: each reads results and writes tables under one lock, so
    that the tables of the last one have the results of all.
    """
    logs = work.folder / "logs"
    with lock_folder(logs, wait=True):
        failures = {}
        for path in logs.glob(f"*{FAILURE}"):
            failures[path.stem] = files.read_text(path)
        work.write_tables(failures)


def format_seconds(seconds: float) -> str:
    """Formats a duration in seconds as `48 s`, `12 min` or `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Sweep(Workload):
    """The trials of a sweep, in the order of the grid.

    Attributes:
        items: The trials.
        settings: The flags of a sweep beside its runs and workers.
    """

    kind = "sweep"
    noun = "trials"
    flags_name = SWEEP_FLAGS

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

        Returns:
            The run of the trial, `run_trial`, and its arguments.
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
        """Makes the row of a trial in `trials.csv`.

        Its status is `failed`, `finished`, `damaged` (it has files that cannot
        be read) or `missing`.
        """
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
            is_nan = score != score
            if not is_nan:
                row[name] = score
        return row

    def write_reports(self) -> None:
        """Writes summary, comparisons, figures and HParams."""
        # A late import: an interrupted command should not wait for it.
        from tfcomp.sweeps import sweep_page

        # Old reports go first: until all are written they would not fit the
        # new tables.
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
        settings = {str(trial.setting) for trial in self.items}
        if len(settings) > MAX_DRAWN:
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
        ConfigError: If a combination of the grid breaks a rule.
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
