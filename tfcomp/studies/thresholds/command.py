"""How much data does a decoder need? (section 4.2, figure 4c)

    tfcomp study thresholds threshold --workers=2

searches, for every kind of training set, grid size and seed, the smallest
number of bumps that reaches a target, and fits how it grows with the grid.
The search itself decides on the dataset, its size, its region, its
coordinates, the grid size, the seed and the number of steps; all other flags
of a run hold for every training. Finished trainings survive an interruption:
the same command runs what is missing.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.models.config_checks import list_announcements
from tfcomp.storage.files import make_subfolder
from tfcomp.studies import Study
from tfcomp.studies.thresholds import (
    one_search,
    threshold_settings,
    threshold_tables,
)
from tfcomp.studies.thresholds.cases import Case, Evaluations, list_cases
from tfcomp.sweeps.scheduler_options import SchedulerOptions, is_here
from tfcomp.sweeps.worker_task import TaskFunction
from tfcomp.sweeps.workload import Workload, run_as_asked


@dataclass(frozen=True)
class ThresholdSearches(Workload):
    """All searches of one command, its items; see docs/threshold.md."""

    kind = "threshold search"
    noun = "searches"
    flags_name = "threshold.flags"

    items: Sequence[Case]

    def list_missing(self) -> list[Case]:
        """Returns unfinished searches; large grids, which take long, first."""
        return sorted(super().list_missing(), key=lambda c: -c.grid_size)

    def is_finished(self, case: Case) -> bool:
        """Checks whether all trainings of a search are recorded."""
        return self._read_rows(case) is not None

    def make_call(self, case: Case) -> tuple[TaskFunction, list[str]]:
        """The call of a search (`one_search`)."""
        settings = dataclasses.replace(
            case.settings,
            grid_sizes=str(case.grid_size),
            kinds=case.kind,
            regions=f'"{case.region}"',
            first_seed=case.seed,
            seeds=1,
        )
        lines = run_flags.list_flag_lines(case.base)
        return one_search.main, lines + run_flags.list_flag_lines(settings)

    def get_config(self, case: Case) -> RunConfig:
        """Returns a run like its trainings."""
        return case.base

    def describe_result(self, case: Case) -> str:
        """Returns a search and its result in one line."""
        found = ", ".join(
            f"{row['criterion']} "
            f"{'from' if row['reached'] else 'not reached up to'} "
            f"{row['num_bumps']} bumps"
            for row in self._read_rows(case) or ()
        )
        return f"{case.describe()}: {found}" if found else case.describe()

    def fit_laws(self) -> list[threshold_tables.Law]:
        """Fits power laws to the finished searches."""
        return threshold_tables.fit_laws(self._collect_rows())

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the tables of finished searches."""
        threshold_tables.write_tables(self.folder, self._collect_rows())

    def write_reports(self) -> None:
        """Writes the figures and the means that they show."""
        from tfcomp.figures.exhibits import save_exhibit

        figures = make_subfolder(self.folder, "figures")
        laws, targets = self.fit_laws(), self.items[0].settings.targets
        for exhibit in threshold_tables.make_exhibits(laws, targets):
            save_exhibit(exhibit, figures)

    def _collect_rows(self) -> list[threshold_tables.Row]:
        """Returns the rows of all finished searches."""
        return [
            row for case in self.items for row in self._read_rows(case) or ()
        ]

    def _read_rows(self, case: Case) -> list[threshold_tables.Row] | None:
        return threshold_tables.list_rows(case, Evaluations.of(case.base))


def search_thresholds(values: dict[str, Any]) -> int:
    """Checks everything, runs what is missing, writes tables and figures."""
    searches, failures = run_as_asked(make_searches, values)
    print("\n".join(["", *(law.describe() for law in searches.fit_laws())]))
    folder = searches.folder
    print(f"\ntables   {folder}\nfigures  {folder / 'figures'}")
    for line in searches.describe_failures(failures):
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, of a search, and of its workers."""
    values = threshold_settings.define_search_flags()
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_searches(values: dict[str, Any]) -> ThresholdSearches:
    """Returns the searches that the flags describe; writes nothing.

    Raises ConfigError if a flag breaks a rule for any of the grid sizes.
    """
    base = make_config(values)
    settings = threshold_settings.SearchSettings.from_flags(values)
    cases = list_cases(base, settings)
    here = is_here(values)
    notes: dict[str, None] = {}
    # Seeds differ in nothing that is checked, and there may be thousands.
    for case in (c for c in cases if c.seed == settings.first_seed):
        if case.kind != "bumps":
            first = case.make_config(1)
            notes |= dict.fromkeys(list_announcements(first, here))
        most = case.make_config(case.make_limits().maximum)
        notes |= dict.fromkeys(list_announcements(most, here))
    for note in notes:
        print(note)
    text = run_flags.format_flags(base) + "\n".join(
        [*run_flags.list_flag_lines(settings), ""]
    )
    return ThresholdSearches(Path(base.run_dir), cases, text)


STUDY = Study(
    "thresholds",
    __doc__,
    define_flags,
    search_thresholds,
    plan=("threshold",),
    start="threshold",
    make_work=make_searches,
    first="tfcomp study thresholds threshold_quick --workers=2",
)
main = STUDY.main
