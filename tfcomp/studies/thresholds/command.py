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

from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import (
    define_settings,
    format_flags,
    list_flag_lines,
)
from tfcomp.models.config_checks import list_announcements
from tfcomp.studies import Study
from tfcomp.studies.thresholds.cases import Case, Evaluations, list_cases
from tfcomp.studies.thresholds.threshold_settings import (
    SearchSettings,
    define_search_flags,
)
from tfcomp.studies.thresholds.threshold_tables import (
    Law,
    Row,
    fit_laws,
    list_rows,
    make_exhibits,
    write_tables,
)
from tfcomp.sweeps.scheduler_options import SchedulerOptions, is_here
from tfcomp.sweeps.workload import Workload, run_as_asked


@dataclass(frozen=True)
class ThresholdSearches(Workload):
    """All searches of one command, its items.

    Their folder has

    threshold.flags    every resolved flag, as a flagfile
    evaluations/       the scores of every training (see `cases`)
    logs/<search>.log  what the processes print
    thresholds.csv     one row for each search (see `threshold_tables`)
    slopes.csv         one row for each power law
    figures/           the picture, and the means that it shows
    """

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
        laws = self.fit_laws()
        for exhibit in make_exhibits(laws, self.items[0].settings.targets):
            from tfcomp.figures.exhibits import save_exhibit

            save_exhibit(exhibit, self.folder / "figures")

    def _collect_rows(self) -> list[Row]:
        """The rows of all finished searches."""
        return [
            row for case in self.items for row in self._read_rows(case) or ()
        ]

    def _read_rows(self, case: Case) -> list[Row] | None:
        return list_rows(case, Evaluations.of(case.base))


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
    """The flags of a run, those of a search, and where searches run."""
    values = define_search_flags()
    define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_searches(values: dict[str, Any]) -> ThresholdSearches:
    """The searches that the flags describe, checked; writes nothing.

    Raises:
        ConfigError: If a flag breaks a rule for any of the grid sizes.
    """
    base = make_config(values)
    settings = SearchSettings.from_flags(values)
    cases = list_cases(base, settings)
    here = is_here(values)
    # Seeds differ in nothing that is checked, and there may be thousands.
    firsts = [case for case in cases if case.seed == settings.first_seed]
    notes = [note for case in firsts for note in check_case(case, here)]
    for note in dict.fromkeys(notes):
        print(note)
    text = format_flags(base) + "\n".join([*list_flag_lines(settings), ""])
    return ThresholdSearches(Path(base.run_dir), cases, text)


def check_case(case: Case, here: bool = True) -> list[str]:
    """Checks the trainings of a search; returns what a user should know.

    Raises:
        ConfigError: Naming the flag, the rule and the value.
    """
    first = case.make_config(1)
    notes = list_announcements(first, here) if case.kind != "bumps" else []
    most = case.make_config(case.make_limits().maximum)
    return [*notes, *list_announcements(most, here)]


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
