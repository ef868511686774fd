"""How much data does a decoder need? (section 4.2, figure 4c)

    python -m tfcomp.threshold --flagfile=threshold.flags --workers=2

searches, for every kind of training set, grid size and seed, the smallest
number of bumps that reaches a target, and fits how it grows with the grid.
Of the flags of a run those hold that the search does not decide: it sets the
dataset, its size, its region and its coordinates, the grid size, the seed and
the number of steps. The same command goes on after an interruption.
"""

from __future__ import annotations

import sys
from typing import Any

from absl import flags

from tfcomp.config.command import exit_on_user_error
from tfcomp.config.command import run_command
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import format_flags
from tfcomp.config.run_flags import make_flags
from tfcomp.models.config_checks import list_announcements
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.thresholds.cases import Case
from tfcomp.thresholds.cases import list_cases
from tfcomp.thresholds.threshold_folder import ThresholdFolder
from tfcomp.thresholds.threshold_run import Study
from tfcomp.thresholds.threshold_run import run_study
from tfcomp.thresholds.threshold_settings import define_flags
from tfcomp.thresholds.threshold_settings import list_settings_flags
from tfcomp.thresholds.threshold_settings import make_settings
from tfcomp.thresholds.threshold_tables import Law

FLAGS = {
    "workers": (0, "Searches at a time; 0 is one a GPU, or one."),
    "threads": (0, "Threads of a search; 0 shares the cores."),
    "scheduler": (
        "",
        "Address of a Dask scheduler, whose workers share the folders.",
    ),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, define_all_flags(), search_thresholds)


def search_thresholds(settings: dict[str, Any]) -> int:
    """Checks everything, runs what is missing, writes tables and figures."""
    options = SchedulerOptions(
        workers=settings["workers"],
        scheduler=settings["scheduler"],
        threads=settings["threads"],
    )
    study = make_study(settings)
    study.folder.check()
    laws, failures = run_study(study, options)
    draw(study, laws)
    print("\n".join(["", *(describe_law(law) for law in laws)]))
    print(f"\ntables   {study.folder.path}\nfigures  {study.folder.figures}")
    for name, reason in failures.items():
        print(f"failed   {name}: {reason}", file=sys.stderr)
    return 1 if failures else 0


def define_all_flags() -> flags.FlagValues:
    """The flags of a run, of a search, and of the processes."""
    return make_flags(FLAGS, define_flags())


def make_study(settings: dict[str, Any]) -> Study:
    """The study that the flags describe, checked; writes nothing.

    Raises:
        ConfigError: If a flag breaks a rule for any of the grid sizes.
    """
    base = make_config(settings)
    search = make_settings(settings)
    cases = list_cases(base, search)
    folder = ThresholdFolder(base)
    for note in dict.fromkeys(n for case in cases for n in check_case(case)):
        print(note)
    lines = (f"{line}\n" for line in list_settings_flags(search))
    return Study(folder, cases, format_flags(base) + "".join(lines))


def check_case(case: Case) -> list[str]:
    """Checks the trainings of a search; returns what a user should know.

    Raises:
        ConfigError: Naming the flag, the rule and the value.
    """
    first = case.make_config(1)
    notes = list_announcements(first) if case.kind != "bumps" else []
    most = case.make_config(case.make_limits().maximum)
    return [*dict.fromkeys([*notes, *list_announcements(most)])]


def draw(study: Study, laws: list[Law]) -> None:
    """Writes the figures and the means that they show."""
    if laws:
        # Imported here: bad flags must be answered without matplotlib.
        from tfcomp.figures.exhibits import save_exhibit
        from tfcomp.thresholds.threshold_exhibits import make_exhibits

        targets = study.cases[0].settings.targets
        for exhibit in make_exhibits(laws, targets):
            save_exhibit(exhibit, study.folder.figures)


def describe_law(law: Law) -> str:
    """One law in one line."""
    kind, region, criterion = law.key
    text = f"{criterion}  {kind}, region {region}: {law.quantity}"
    if law.fit is not None:
        text += f" ~ {law.fit.describe()}"
    return f"{text}  [{law.note}]" if law.note else text


if __name__ == "__main__":
    exit_on_user_error(main)
