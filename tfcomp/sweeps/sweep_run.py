"""A sweep: its trials, how one of them is run, what is made of all.

The folder of a sweep has

sweep.flags      every resolved flag; `--flagfile` of it repeats the sweep
trials/<hash>/   run folders
logs/<hash>.log  what the processes print
trials.csv       one row for each trial, and more tables (see `sweep_tables`)
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
from tfcomp.sweeps.sweep_tables import read_result, stamp_result, write_tables
from tfcomp.sweeps.worker_task import TaskFunction
from tfcomp.sweeps.workload import Workload


@dataclass(frozen=True)
class Sweep(Workload):
    """What a sweep is to do; its items are trials, in the order of the grid."""

    kind = "sweep"
    noun = "trials"
    flags_name = "sweep.flags"

    items: Sequence[grid.Trial]
    settings: grid.SweepSettings
    _known: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def is_finished(self, trial: grid.Trial) -> bool:
        """Whether a trial has all that the sweep wants of it, undamaged."""
        if not is_finished(trial.path):
            return False
        return not self.settings.measure or is_measured(trial.path)

    def make_call(self, trial: grid.Trial) -> tuple[TaskFunction, list[str]]:
        """The call of `run_trial`."""
        measure = ["--measure"] if self.settings.measure else []
        return run_trial, run_flags.list_flag_lines(trial.config) + measure

    def get_config(self, trial: grid.Trial) -> RunConfig:
        return trial.config

    def write_tables(self, failures: Mapping[str, str]) -> None:
        write_tables(self.folder, self.items, self._read_results(), failures)

    def write_reports(self) -> None:
        results = self._read_results()
        write_reports(self.folder, self.items, results, self.settings)

    def _read_results(self) -> dict[str, dict[str, Any]]:
        """The numbers of trials that have any, read again when they change."""
        for trial in self.items:
            stamp = stamp_result(trial)
            if self._known.get(trial.name, ((), None))[0] != stamp:
                self._known[trial.name] = stamp, read_result(trial)
        found = {name: result for name, (_, result) in self._known.items()}
        return {name: result for name, result in found.items() if result}


def define_flags() -> flags.FlagValues:
    """The flags of a run, those of a sweep, and where its trials run."""
    values = run_flags.make_flags(grid.GRID, run_flags.define_run_flags())
    # A hundred trials need no pictures and no SavedModels, and these take half
    # of what a short run spends outside training.
    values.set_default("pictures", False)
    values.set_default("export", False)
    run_flags.define_settings(grid.SweepSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_sweep(values: dict[str, Any]) -> Sweep:
    """The sweep that the flags describe, once checked; writes nothing."""
    settings = grid.SweepSettings.from_flags(values)
    config = make_config(values)
    points = grid.parse_grid(values["grid"], settings.seeds, config.plugins)
    trials, notes = grid.make_trials(values, points, settings.all_seeds)
    for note in notes:
        print(note)
    version = compute_code_version(config.plugins)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines = "\n".join([*lines, *run_flags.list_flag_lines(settings), ""])
    text = f"# code version: {version}\n{run_flags.format_flags(config)}{lines}"
    return Sweep(Path(config.run_dir), trials, text, settings)
