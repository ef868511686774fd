"""Searches how much data a decoder needs (section 4.2, figure 4c).

    python -m reproduction.thresholds threshold --workers=2

searches, for every kind of training set, grid size and seed, the smallest
number of bumps that reaches a target, and fits how it grows with the grid.
The search itself decides on the dataset, its size, its region, its
coordinates, the grid size, the seed and the number of steps; all other flags
of a run hold for every training. Finished searches survive an interruption:
the same command runs the missing ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

from reproduction.thresholds import one_search, search_settings
from reproduction.thresholds.cases import Case, Row, list_cases
from reproduction.thresholds.search_settings import SearchSettings
from tfcomp.config import run_flags
from tfcomp.config.command import Command
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.datasets.notes import list_notes
from tfcomp.models.registry import check_config
from tfcomp.statistics import seed_statistics as estimates
from tfcomp.storage.files import (
    check_run_folders,
    make_folder,
    read_text,
    write_csv,
)
from tfcomp.sweeps.scheduler_options import SchedulerOptions, is_here
from tfcomp.sweeps.sweep_run import Workload, run_missing
from tfcomp.sweeps.worker_task import TaskFunction

if TYPE_CHECKING:
    from tfcomp.figures.exhibits import Exhibit

SLOPES = "slopes.csv"
KEYS = ("kind", "region", "criterion")
TOTAL = "num_examples"
GUIDES = {"linear, N": 1.0, "cubic, N³": 3.0}
COLUMNS = (*KEYS, "grid_size", "mean_examples", "low", "high", "num_seeds")


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
            write_csv(self.folder / SLOPES, list_slopes(rows))

    def write_reports(self) -> None:
        from tfcomp.figures.exhibits import save_exhibit, use_own_style

        figures = make_folder(self.folder / "figures")
        with use_own_style():
            for exhibit in make_exhibits(self.list_rows()):
                save_exhibit(exhibit, figures)


def list_slopes(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of `slopes.csv`: the growth of a count with the grid."""
    slopes = []
    for key, group in _group(rows):
        reached = [row for row in group if row["reached"]]
        for quantity in ("num_bumps", TOTAL):
            _, fit, note = _fit(group, quantity)
            slope = {
                **dict(zip(KEYS, key, strict=True)),
                "quantity": quantity,
                **{n: getattr(fit, n, None) for n in ("slope", "low", "high")},
                "n": len(reached),
                "num_sizes": len({row["grid_size"] for row in reached}),
                "not_reached": len(group) - len(reached),
                "note": note,
            }
            slopes.append(slope)
    return slopes


def _group(
    rows: Iterable[Row], names: Sequence[str] = KEYS
) -> Iterable[tuple[tuple[str, ...], list[Row]]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups.items()


def _fit(
    rows: Sequence[Row], quantity: str
) -> tuple[list[estimates.SizeMean], estimates.PowerLaw | None, str]:
    """Returns means of sizes, their law, and why there is none."""
    reached = [row for row in rows if row["reached"]]
    counts, notes = [row[quantity] for row in reached], []
    if missed := len(rows) - len(reached):
        notes.append(f"{missed} of {len(rows)} searches not reached")
    if 0 in counts:
        notes.append(f"0 suffices in {counts.count(0)}: no slope")
        return [], None, "; ".join(notes)
    if reached and not any(row["num_bumps"] for row in reached):
        notes.append("stripes alone: linear by construction")
    sizes = [row["grid_size"] for row in reached]
    means = estimates.average_sizes(sizes, counts)
    fit = estimates.fit_power_law(means)
    if fit is None:
        notes.append("fewer than 2 sizes: no slope")
    elif fit.low is None:
        notes.append("2 sizes: no interval")
    return means, fit, "; ".join(notes)


def make_exhibits(rows: Sequence[Row]) -> list[Exhibit]:
    """Plots the training examples needed over grid size, by criterion."""
    groups = _group(rows, ["criterion"])
    return [_make_exhibit(name, searches) for (name,), searches in groups]


def _make_exhibit(criterion: str, searches: list[Row]) -> Exhibit:
    # Imported here: bad flags must be answered without matplotlib.
    import pandas as pd

    from reproduction.thresholds.law_plot import draw_power_laws
    from tfcomp.figures.exhibits import Exhibit

    is_accuracy = criterion == search_settings.ACCURACY
    sign = "at least" if is_accuracy else "at most"
    words = criterion.replace("_", " ").replace("mse", "MSE")
    goal = f"{words} of {sign} {searches[0]['target']:g}"
    laws, marks, rows = {}, list[tuple](), list[Row]()
    for key, group in _group(searches):
        means, fit, _ = _fit(group, TOTAL)
        numbers = [astuple(mean) for mean in means]
        slope = fit.describe() if fit else "no slope"
        line = f"{key[0].replace('_', ' ')}, region {key[1]}: {slope}"
        laws[line] = (fit.constant, fit.slope) if fit else None
        for row in sorted(group, key=lambda row: not row["reached"]):
            mark = "search" if row["reached"] else "not reached"
            marks.append((line, mark, row["grid_size"], row[TOTAL], None, None))
        marks += [(line, "mean", *mean[:4]) for mean in numbers]
        rows += [dict(zip(COLUMNS, key + n, strict=True)) for n in numbers]
    names = ["line", "mark", "grid_size", "examples", "low", "high"]
    table = pd.DataFrame(marks, columns=names)
    title = f"Data needed for {goal}"
    figure = draw_power_laws(table, laws, GUIDES, title=title)
    caption = (
        f"The smallest number of training examples (stripes included) that "
        f"reached {goal} at held-out positions, or at all positions where "
        "nothing was held out. Small: one search, with its own seed. Large: "
        "geometric mean and 95 % interval over seeds. Line: power law through "
        "the means, with the 95 % interval of its exponent. Open triangle: "
        "not reached by this number."
    )
    return Exhibit(f"threshold_{criterion}", goal, caption, figure, rows)


def search_thresholds(values: dict[str, Any]) -> int:
    """Runs the missing searches, and writes tables and figures."""
    options = SchedulerOptions.from_flags(values)
    searches = make_searches(values)
    check_run_folders(values)
    failures = run_missing(searches, options)
    folder = searches.folder
    if searches.list_rows():
        print(f"\n{read_text(folder / SLOPES)}")
    print(f"tables   {folder}\nfigures  {folder / 'figures'}")
    for line in failures:
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, of a search, and of its workers."""
    values = search_settings.define_search_flags()
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
            dataset = check_config(config, is_here(values))
            notes |= dict.fromkeys(list_notes(dataset))
    print(*notes, sep="\n", end="\n" if notes else "")
    lines = [*run_flags.list_flag_lines(settings), ""]
    text = run_flags.format_flags(base) + "\n".join(lines)
    return ThresholdSearches(Path(base.run_dir), cases, text)


main = Command(
    __doc__,
    define_flags,
    search_thresholds,
    "python -m reproduction.thresholds threshold_quick --workers=2",
)
