"""Runs what is missing of a sweep and writes what came out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.config.run_flags import list_flag_lines
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import METRICS_FILE
from tfcomp.sweeps.scheduling import Pool
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.scheduling import Task
from tfcomp.sweeps.sweep_folder import SweepFolder
from tfcomp.sweeps.sweep_progress import Progress
from tfcomp.sweeps.sweep_reports import write_reports
from tfcomp.sweeps.sweep_tables import read_result
from tfcomp.sweeps.sweep_tables import write_tables
from tfcomp.sweeps.trials import Trial


@dataclass(frozen=True)
class Sweep:
    """What a sweep is to do.

    Attributes:
        folder: Where it writes.
        trials: Its trials, in the order of the grid.
        flags: Its resolved flags, a flagfile that repeats it.
        measure: Whether trials also compute the numbers of the claims.
        interval: How 95 % intervals are made
            (`seed_statistics.compute_interval`).
    """

    folder: SweepFolder
    trials: Sequence[Trial]
    flags: str
    measure: bool = False
    interval: str = "student"


def run_sweep(sweep: Sweep, options: SchedulerOptions) -> dict[str, str]:
    """Runs the trials that are not finished, and writes the tables.

    Trials that failed in an earlier start are tried again. A sweep that has
    nothing to run starts no workers.

    Returns:
        The reasons of the trials that failed, by name.

    Raises:
        ConfigError: If the scheduler does not answer.
        RunError: If another sweep is at work in the folder, or it cannot be
            written.
    """
    if not list_missing(sweep):
        with sweep.folder.claim():
            _finish(sweep, read_results(sweep), {})
        return {}
    with Pool(options) as pool, sweep.folder.claim():
        missing = list_missing(sweep)  # nobody else can finish one now
        print(describe_start(sweep, missing, pool), flush=True)
        write_text(sweep.folder.flags_file, sweep.flags)
        results = read_results(sweep)
        failures = _run_trials(sweep, missing, pool, results)
        _finish(sweep, results, failures)
    return failures


def list_missing(sweep: Sweep) -> list[Trial]:
    """The trials that are not finished."""
    return [trial for trial in sweep.trials if not is_finished(sweep, trial)]


def is_finished(sweep: Sweep, trial: Trial) -> bool:
    """Whether a trial has all that the sweep wants of it."""
    if not (trial.path / METRICS_FILE).exists():
        return False
    if not sweep.measure:
        return True
    from tfcomp.evaluation.measure_files import is_measured

    return is_measured(trial.path)


def read_results(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """The numbers of the trials that have any, by their names."""
    found = {trial.name: read_result(trial) for trial in sweep.trials}
    return {name: result for name, result in found.items() if result}


def describe_start(sweep: Sweep, missing: Sequence[Trial], pool: Pool) -> str:
    """What is going to be done, in one line."""
    done = len(sweep.trials) - len(missing)
    kept = f", {done} are finished already" if done else ""
    return (
        f"{len(missing)} trials to run, {pool.workers} at a time{kept}; "
        f"logs in {sweep.folder.log('').parent}"
    )


def make_task(sweep: Sweep, trial: Trial) -> Task:
    """The process of a trial."""
    command = [sys.executable, "-m", "tfcomp.sweeps.trial"]
    command += list_flag_lines(trial.config)
    if sweep.measure:
        command.append("--measure")
    return Task(trial.name, command, sweep.folder.log(trial.name))


def _run_trials(
    sweep: Sweep,
    missing: Sequence[Trial],
    pool: Pool,
    results: dict[str, dict[str, Any]],
) -> dict[str, str]:
    """Runs trials, adds their results to those given, returns failures."""
    named = {trial.name: trial for trial in missing}
    progress = Progress(len(missing))
    failures: dict[str, str] = {}
    write_tables(sweep.folder.path, sweep.trials, results, failures)
    for outcome in pool.run([make_task(sweep, trial) for trial in missing]):
        trial = named[outcome.name]
        reason = outcome.reason
        if not reason and not is_finished(sweep, trial):
            reason = "wrote no results (is the folder shared with workers?)"
        if reason:
            failures[trial.name] = reason
        if result := read_result(trial):
            results[trial.name] = result
        progress.report(trial.describe(), outcome.seconds, reason)
        write_tables(sweep.folder.path, sweep.trials, results, failures)
    return failures


def _finish(
    sweep: Sweep,
    results: dict[str, dict[str, Any]],
    failures: dict[str, str],
) -> None:
    folder = sweep.folder.path
    write_tables(folder, sweep.trials, results, failures)
    write_reports(folder, sweep.trials, results, sweep.interval)
