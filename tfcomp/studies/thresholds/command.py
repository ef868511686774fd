"""How much data does a decoder need? (section 4.2, figure 4c)

    tfcomp study thresholds threshold --workers=2

searches, for every kind of training set, grid size and seed, the smallest
number of bumps that reaches a target, and fits how it grows with the grid.
The search itself decides on the dataset, its size, its region, its
coordinates, the grid size, the seed and the number of steps; all other flags
of a run hold for every training. Finished trainings survive an interruption:
the same command runs what is missing.
"""

import sys
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config.command import run_command
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import (
    define_settings,
    format_flags,
    list_flag_lines,
)
from tfcomp.models.config_checks import list_announcements
from tfcomp.storage.output_folders import check_run_folders
from tfcomp.studies.thresholds.cases import Case, list_cases
from tfcomp.studies.thresholds.threshold_run import ThresholdSearches
from tfcomp.studies.thresholds.threshold_settings import (
    SearchSettings,
    define_search_flags,
)
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_missing


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    first = "tfcomp study thresholds threshold_quick --workers=2"
    return run_command(argv, __doc__, define_flags(), search_thresholds, first)


def search_thresholds(values: dict[str, Any]) -> int:
    """Checks everything, runs what is missing, writes tables and figures."""
    options = SchedulerOptions.from_flags(values)
    searches = make_searches(values)
    check_run_folders(values)
    failures = run_missing(searches, options)
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
    here = not values.get("scheduler")
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
