"""A sweep: its trials, the call of each, and its tables and reports.

The folder of a sweep has

sweep.flags      every resolved flag; `--flagfile` of it repeats the sweep
trials/<hash>/   run folders
logs/<hash>.log  the output of trials
trials.csv       one row for each trial
summary.csv      statistics over seeds, and figures (see `sweep_reports`)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.evaluation.metric_files import is_measured
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.run_folder import is_finished
from tfcomp.sweeps import grid
from tfcomp.sweeps.one_trial import run_trial
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_reports import write_reports
from tfcomp.sweeps.sweep_tables import read_result, write_trials
from tfcomp.sweeps.worker_task import TaskFunction
from tfcomp.sweeps.workload import Workload
from tfcomp.tables.flatten import Row


@dataclass(frozen=True)
class Sweep(Workload):
    """The trials of a sweep, in the order of the grid."""

    kind = "sweep"
    noun = "trials"
    flags_name = "sweep.flags"

    items: Sequence[grid.Trial]
    settings: grid.SweepSettings
    _finished: dict[str, list[Row]] = field(default_factory=dict)

    def is_finished(self, trial: grid.Trial) -> bool:
        """Returns True if all files of a trial are there and undamaged."""
        if not is_finished(trial.path):
            return False
        return not self.settings.measure or is_measured(trial.path)

    def make_call(self, trial: grid.Trial) -> tuple[TaskFunction, list[str]]:
        """Returns the call of `run_trial`."""
        measure = ["--measure"] if self.settings.measure else []
        return run_trial, run_flags.list_flag_lines(trial.config) + measure

    def get_config(self, trial: grid.Trial) -> RunConfig:
        """Returns the run of a trial."""
        return trial.config

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes `trials.csv`."""
        write_trials(self.folder, self.items, self._read_results(), failures)

    def write_reports(self) -> None:
        """Writes statistics, figures and the page."""
        results = self._read_results()
        write_reports(self.folder, self.items, results, self.settings)

    def _read_results(self) -> dict[str, list[Row]]:
        """Reads the numbers of trials; of finished trials once."""
        results = {}
        for trial in self.items:
            rows = self._finished.get(trial.name) or read_result(trial)
            if rows:
                results[trial.name] = rows
                if trial.name not in self._finished and self.is_finished(trial):
                    self._finished[trial.name] = rows
        return results


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, of a sweep, and of its workers."""
    values = run_flags.make_flags(grid.GRID, run_flags.define_run_flags())
    # A hundred trials need no pictures and no SavedModels, which take half of
    # the time of a short run outside training.
    values.set_default("pictures", False)
    values.set_default("export", False)
    run_flags.define_settings(grid.SweepSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_sweep(values: dict[str, Any]) -> Sweep:
    """Returns the sweep that the flags describe; writes nothing."""
    settings = grid.SweepSettings.from_flags(values)
    config = make_config(values)
    points = grid.parse_grid(values["grid"], settings.seeds, config.plugins)
    trials, notes = grid.make_trials(values, points, settings.all_seeds)
    for note in notes:
        print(note)
    version = compute_code_version(config.plugins)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines += run_flags.list_flag_lines(settings)
    text = f"# code version: {version}\n{run_flags.format_flags(config)}"
    text += "".join(f"{line}\n" for line in lines)
    return Sweep(Path(config.run_dir), trials, text, settings)
