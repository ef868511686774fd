"""A sweep: its trials, how one of them is run, what is made of all."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.config.run_flags import list_flag_lines
from tfcomp.storage.run_folder import METRICS_FILE
from tfcomp.sweeps.sweep_folder import SweepFolder
from tfcomp.sweeps.sweep_reports import write_reports
from tfcomp.sweeps.sweep_settings import SweepSettings
from tfcomp.sweeps.sweep_tables import read_result
from tfcomp.sweeps.sweep_tables import write_tables
from tfcomp.sweeps.trials import Trial
from tfcomp.sweeps.workload import Workload


@dataclass(frozen=True)
class Sweep(Workload):
    """What a sweep is to do.

    Attributes:
        folder: Where it writes.
        trials: Its trials, in the order of the grid.
        flags: Its resolved flags, a flagfile that repeats it.
        settings: What it makes of every setting of the grid.
    """

    kind = "sweep"
    noun = "trials"

    folder: SweepFolder
    trials: Sequence[Trial]
    flags: str
    settings: SweepSettings

    @property
    def items(self) -> Sequence[Trial]:
        """The trials."""
        return self.trials

    def is_finished(self, trial: Trial) -> bool:
        """Whether a trial has all that the sweep wants of it."""
        if not (trial.path / METRICS_FILE).exists():
            return False
        if not self.settings.measure:
            return True
        from tfcomp.evaluation.measure_files import is_measured

        return is_measured(trial.path)

    def make_command(self, trial: Trial) -> list[str]:
        """The process of a trial (`one_trial`)."""
        command = [sys.executable, "-m", "tfcomp.sweeps.one_trial"]
        command += list_flag_lines(trial.config)
        return [*command, *(["--measure"] if self.settings.measure else [])]

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the tables with a row for each trial (`sweep_tables`)."""
        results = self._read_results()
        write_tables(self.folder.path, self.trials, results, failures)

    def write_reports(self) -> None:
        """Writes statistics and figures (`sweep_reports`)."""
        write_reports(
            self.folder.path,
            self.trials,
            self._read_results(),
            self.settings.interval,
        )

    def _read_results(self) -> dict[str, dict[str, Any]]:
        """The numbers of the trials that have any, by their names."""
        found = {trial.name: read_result(trial) for trial in self.trials}
        return {name: result for name, result in found.items() if result}
