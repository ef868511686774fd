"""Threshold searches: how one is run, what is made of all.

The folder of a command has

threshold.flags    every resolved flag; `--flagfile` of it repeats the searches
evaluations/       the scores of every training (see `evaluations`)
logs/<search>.log  what the processes print
thresholds.csv     one row for each search (see `threshold_tables`)
slopes.csv         one row for each power law
figures/           the picture, and the means that it shows
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import list_flag_lines
from tfcomp.studies.thresholds.cases import Case
from tfcomp.studies.thresholds.evaluations import Evaluations
from tfcomp.studies.thresholds.threshold_tables import (
    Law,
    Row,
    fit_laws,
    list_rows,
    write_tables,
)
from tfcomp.sweeps.workload import Workload


@dataclass(frozen=True)
class ThresholdSearches(Workload):
    """All searches of one command, its items."""

    kind = "threshold search"
    noun = "searches"
    flags_name = "threshold.flags"

    items: Sequence[Case]

    def list_missing(self) -> list[Case]:
        """The searches that are not finished, the large grids first.

        So no worker is left with a long search when the others are done.
        """
        return sorted(super().list_missing(), key=lambda c: -c.grid_size)

    def is_finished(self, case: Case) -> bool:
        """Whether all trainings that a search asks for are recorded."""
        return self._read_rows(case) is not None

    def make_command(self, case: Case) -> list[str]:
        """The process of a search (`one_search`)."""
        settings = dataclasses.replace(
            case.settings,
            grid_sizes=str(case.grid_size),
            kinds=case.kind,
            regions=f'"{case.region}"',
            first_seed=case.seed,
            seeds=1,
        )
        command = [sys.executable, "-m", "tfcomp.studies.thresholds.one_search"]
        return command + list_flag_lines(case.base) + list_flag_lines(settings)

    def get_config(self, case: Case) -> RunConfig:
        """A run like its trainings."""
        return case.base

    def describe_result(self, case: Case) -> str:
        """A search in one line, with what it has found."""
        found = ", ".join(
            f"{row['criterion']} "
            f"{'from' if row['reached'] else 'not reached up to'} "
            f"{row['num_bumps']} bumps"
            for row in self._read_rows(case) or ()
        )
        return f"{case.describe()}: {found}" if found else case.describe()

    def fit_laws(self) -> list[Law]:
        """The power laws of what is finished."""
        return fit_laws(self._collect_rows())

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the tables of what is finished; failures have no rows."""
        write_tables(self.folder, self._collect_rows())

    def write_reports(self) -> None:
        """Writes the figures and the means that they show."""
        if laws := self.fit_laws():
            # Imported here: bad flags must be answered without matplotlib.
            from tfcomp.figures.exhibits import save_exhibit
            from tfcomp.studies.thresholds.threshold_exhibits import (
                make_exhibits,
            )

            for exhibit in make_exhibits(laws, self.items[0].settings.targets):
                save_exhibit(exhibit, self.folder / "figures")

    def _collect_rows(self) -> list[Row]:
        """The rows of all finished searches."""
        return [
            row for case in self.items for row in self._read_rows(case) or ()
        ]

    def _read_rows(self, case: Case) -> list[Row] | None:
        return list_rows(case, Evaluations.of(case.base))
