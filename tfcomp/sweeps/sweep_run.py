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
from dataclasses import dataclass
from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import list_flag_lines
from tfcomp.evaluation.measure_files import is_measured
from tfcomp.storage.run_folder import list_damage
from tfcomp.sweeps.sweep_reports import write_reports
from tfcomp.sweeps.sweep_settings import SweepSettings
from tfcomp.sweeps.sweep_tables import read_result, write_tables
from tfcomp.sweeps.trials import Trial
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
        """The numbers of the trials that have any, by their names."""
        found = {trial.name: read_result(trial) for trial in self.items}
        return {name: result for name, result in found.items() if result}
