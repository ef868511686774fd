"""Searches how much data a decoder needs (section 4.2, figure 4c).

    tfcomp study thresholds threshold --workers=2

searches, for every kind of training set, grid size and seed, the smallest
number of bumps that reaches a target, and fits how it grows with the grid.
The search itself decides on the dataset, its size, its region, its
coordinates, the grid size, the seed and the number of steps; all other flags
of a run hold for every training. Finished searches survive an interruption:
the same command runs the missing ones.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.models.config_checks import list_announcements
from tfcomp.storage.files import make_subfolder, read_text, write_csv
from tfcomp.studies import make_main
from tfcomp.studies.thresholds import laws, one_search
from tfcomp.studies.thresholds.cases import Case, Row, list_cases
from tfcomp.studies.thresholds.search_settings import (
    SearchSettings,
    define_search_flags,
)
from tfcomp.sweeps.scheduler_options import SchedulerOptions, is_here
from tfcomp.sweeps.worker_task import TaskFunction
from tfcomp.sweeps.workload import Workload, run_as_asked

SLOPES = "slopes.csv"


@dataclass(frozen=True)
class ThresholdSearches(Workload):
    """All searches of one command, its items; see docs/threshold.md."""

    kind = "threshold search"
    noun = "searches"
    flags_name = "threshold.flags"

    items: Sequence[Case]

    def list_missing(self) -> list[Case]:
        return sorted(super().list_missing(), key=lambda c: -c.grid_size)

    def is_finished(self, case: Case) -> bool:
        return bool(case.read_rows())

    def make_call(
        self, case: Case
    ) -> tuple[RunConfig, TaskFunction, list[str]]:
        lines = run_flags.list_flag_lines(case.base)
        lines += run_flags.list_flag_lines(case.settings)
        return case.base, one_search.main, lines

    def describe_result(self, case: Case) -> str:
        words = []
        for row in case.read_rows():
            start = "from" if row["reached"] else "not reached up to"
            words.append(f"{row['criterion']} {start} {row['num_bumps']} bumps")
        return case.describe() + (f": {', '.join(words)}" if words else "")

    def list_rows(self) -> list[Row]:
        """Returns the rows of all finished searches."""
        return [row for case in self.items for row in case.read_rows()]

    def write_tables(self, failures: Mapping[str, str]) -> None:
        if rows := self.list_rows():
            write_csv(self.folder / "thresholds.csv", rows)
            write_csv(self.folder / SLOPES, laws.list_slopes(rows))

    def write_reports(self) -> None:
        from tfcomp.figures.exhibits import save_exhibit

        figures = make_subfolder(self.folder, "figures")
        for exhibit in laws.make_exhibits(self.list_rows()):
            save_exhibit(exhibit, figures)


def search_thresholds(values: dict[str, Any]) -> int:
    """Runs the missing searches, and writes tables and figures."""
    searches, failures = run_as_asked(make_searches, values)
    folder = searches.folder
    if searches.list_rows():
        print(f"\n{read_text(folder / SLOPES)}")
    print(f"tables   {folder}\nfigures  {folder / 'figures'}")
    for line in searches.describe_failures(failures):
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, of a search, and of its workers."""
    values = define_search_flags()
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_searches(values: dict[str, Any]) -> ThresholdSearches:
    """Returns the searches that the flags describe; writes nothing."""
    base, settings = make_config(values), SearchSettings.from_flags(values)
    cases, notes = list_cases(base, settings), dict[str, None]()
    for case in cases:
        # Seeds differ in nothing that is checked, and there may be thousands.
        if case.seed == settings.first_seed:
            config = case.make_config(case.find_range()[1])
            notes |= dict.fromkeys(list_announcements(config, is_here(values)))
    print(*notes, sep="\n", end="\n" if notes else "")
    lines = [*run_flags.list_flag_lines(settings), ""]
    text = run_flags.format_flags(base) + "\n".join(lines)
    return ThresholdSearches(Path(base.run_dir), cases, text)


main = make_main(
    "thresholds",
    __doc__,
    define_flags,
    search_thresholds,
    "tfcomp study thresholds threshold_quick --workers=2",
)
