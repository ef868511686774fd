"""Runs the searches that are not finished and writes what came out."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tfcomp.config.run_flags import list_flag_lines
from tfcomp.storage.files import write_text
from tfcomp.sweeps.scheduling import Pool
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.scheduling import Task
from tfcomp.sweeps.sweep_progress import Progress
from tfcomp.thresholds.cases import Case
from tfcomp.thresholds.evaluations import Evaluations
from tfcomp.thresholds.threshold_folder import ThresholdFolder
from tfcomp.thresholds.threshold_settings import list_settings_flags
from tfcomp.thresholds.threshold_tables import Law
from tfcomp.thresholds.threshold_tables import Row
from tfcomp.thresholds.threshold_tables import fit_laws
from tfcomp.thresholds.threshold_tables import list_rows
from tfcomp.thresholds.threshold_tables import write_tables


@dataclass(frozen=True)
class Study:
    """What a command is to do.

    Attributes:
        folder: Where it writes.
        cases: Its searches.
        flags: Its resolved flags, a flagfile that repeats it.
    """

    folder: ThresholdFolder
    cases: Sequence[Case]
    flags: str

    def list_missing(self) -> list[Case]:
        """The searches that are not finished, the large grids first.

        So no worker is left with a long search when the others are done.
        """
        evaluations = Evaluations(self.folder.evaluations)
        missing = [c for c in self.cases if list_rows(c, evaluations) is None]
        return sorted(missing, key=lambda case: -case.grid_size)

    def collect(self) -> list[Row]:
        """The rows of all finished searches, in the order of the cases."""
        evaluations = Evaluations(self.folder.evaluations)
        found = (list_rows(case, evaluations) for case in self.cases)
        return [row for rows in found if rows is not None for row in rows]


def run_study(
    study: Study, options: SchedulerOptions
) -> tuple[list[Law], dict[str, str]]:
    """Runs what is missing; starts no worker if there is nothing to run.

    Returns:
        The laws, and the reasons of the searches that failed, by their
        description.

    Raises:
        ConfigError: If the scheduler does not answer.
        RunError: If another command works in the folder, or it cannot be
            written.
    """
    failures: dict[str, str] = {}
    if study.list_missing():
        with Pool(options) as pool, study.folder.claim():
            failures = _run_missing(study, pool)
    with study.folder.claim():
        return write_results(study), failures


def write_results(study: Study) -> list[Law]:
    """Writes the tables of what is finished."""
    rows = study.collect()
    laws = fit_laws(rows)
    write_tables(study.folder.path, rows, laws)
    return laws


def make_task(study: Study, case: Case) -> Task:
    """The process of one search."""
    settings = dataclasses.replace(
        case.settings,
        grid_sizes=str(case.grid_size),
        kinds=case.kind,
        regions=f'"{case.region}"',
        first_seed=case.seed,
        seeds=1,
    )
    command = [sys.executable, "-m", "tfcomp.thresholds.one_search"]
    command += list_flag_lines(case.base) + list_settings_flags(settings)
    return Task(case.name, command, study.folder.log(case.name))


def _run_missing(study: Study, pool: Pool) -> dict[str, str]:
    missing = {case.name: case for case in study.list_missing()}
    print(_describe_start(study, len(missing), pool), flush=True)
    write_text(study.folder.flags_file, study.flags)
    evaluations = Evaluations(study.folder.evaluations)
    progress = Progress(len(missing))
    failures = {}
    tasks = [make_task(study, case) for case in missing.values()]
    for outcome in pool.run(tasks):
        case, reason = missing[outcome.name], outcome.reason
        rows = list_rows(case, evaluations)
        if not reason and rows is None:
            reason = "wrote no results (is the folder shared with workers?)"
        if reason:
            failures[case.describe()] = reason
        line = case.describe() if rows is None else describe_rows(case, rows)
        progress.report(line, outcome.seconds, reason)
        write_results(study)
    return failures


def describe_rows(case: Case, rows: Sequence[Row]) -> str:
    """A finished search in one line."""
    found = ", ".join(
        f"{row['criterion']} "
        f"{'from' if row['reached'] else 'not reached up to'} "
        f"{row['num_bumps']} bumps"
        for row in rows
    )
    return f"{case.describe()}: {found}"


def _describe_start(study: Study, num_missing: int, pool: Pool) -> str:
    done = len(study.cases) - num_missing
    kept = f", {done} are finished already" if done else ""
    return (
        f"{num_missing} searches to run, {pool.workers} at a time{kept}; "
        f"logs in {study.folder.log('').parent}"
    )
