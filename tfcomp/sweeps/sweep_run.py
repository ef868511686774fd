"""A sweep: its trials, how one of them is run, what is made of all.

The folder of a sweep has

sweep.flags      every resolved flag; `--flagfile` of it repeats the sweep
trials/<hash>/   run folders
logs/<hash>.log  what the processes print
trials.csv       one row for each trial, and more tables (see `sweep_tables`)
summary.csv      statistics over seeds, and figures (see `sweep_reports`)
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import (
    define_run_flags,
    define_settings,
    format_flags,
    list_flag_lines,
    make_flags,
)
from tfcomp.evaluation.measure_files import is_measured
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.run_folder import list_damage
from tfcomp.sweeps.grid import (
    GRID,
    SweepSettings,
    Trial,
    make_trials,
    parse_grid,
)
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_reports import write_reports
from tfcomp.sweeps.sweep_tables import read_result, stamp_result, write_tables
from tfcomp.sweeps.workload import Workload


@dataclass(frozen=True)
class Sweep(Workload):
    """What a sweep is to do.

    Attributes:
        items: Its trials, in the order of the grid.
        settings: What it makes of every setting of the grid.
    """

    kind = "sweep"
    noun = "trials"
    flags_name = "sweep.flags"

    items: Sequence[Trial]
    settings: SweepSettings
    _known: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def is_finished(self, trial: Trial) -> bool:
        """Whether a trial has all that the sweep wants of it, undamaged."""
        if list_damage(trial.config):
            return False
        return not self.settings.measure or is_measured(trial.path)

    def make_command(self, trial: Trial) -> list[str]:
        """The process of a trial (`one_trial`)."""
        command = [sys.executable, "-m", "tfcomp.sweeps.one_trial"]
        command += list_flag_lines(trial.config)
        return [*command, *(["--measure"] if self.settings.measure else [])]

    def get_config(self, trial: Trial) -> RunConfig:
        """Its run."""
        return trial.config

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the tables with a row for each trial."""
        write_tables(self.folder, self.items, self._read_results(), failures)

    def write_reports(self) -> None:
        """Writes statistics and figures."""
        results = self._read_results()
        write_reports(self.folder, self.items, results, self.settings)

    def _read_results(self) -> dict[str, dict[str, Any]]:
        """The numbers of the trials that have any, by their names.

        Files are read again when they have changed.
        """
        for trial in self.items:
            stamp = stamp_result(trial)
            if self._known.get(trial.name, ((), None))[0] != stamp:
                self._known[trial.name] = stamp, read_result(trial)
        found = {name: result for name, (_, result) in self._known.items()}
        return {name: result for name, result in found.items() if result}


def define_flags() -> flags.FlagValues:
    """The flags of a run, those of a sweep, and where its trials run."""
    values = make_flags(GRID, define_run_flags())
    # A hundred trials need no pictures and no SavedModels, and these take half
    # of what a short run spends outside training.
    values.set_default("pictures", False)
    values.set_default("export", False)
    define_settings(SweepSettings.list_settings(), values)
    define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_sweep(values: dict[str, Any]) -> Sweep:
    """The sweep that the flags describe, checked; writes nothing.

    Raises:
        ConfigError: If a flag or a combination breaks a rule.
        RunError: If a flag does not exist.
    """
    settings = SweepSettings.from_flags(values)
    config = make_config(values)
    grid = parse_grid(values["grid"], settings.seeds, config.plugins)
    trials, notes = make_trials(values, grid, settings.all_seeds)
    for note in notes:
        print(note)
    version = compute_code_version(config.plugins)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines = "\n".join([*lines, *list_flag_lines(settings), ""])
    text = f"# code version: {version}\n{format_flags(config)}{lines}"
    return Sweep(Path(config.run_dir), trials, text, settings)
