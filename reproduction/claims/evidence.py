"""The evidence: finished runs as two tables, and threshold searches."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.groups import Group, group_runs
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.settings import split_names
from tfcomp.storage import files
from tfcomp.storage.run_folder import find_folders
from tfcomp.tables.flatten import Flags, parse_run_flags
from tfcomp.tables.read import Results, read_results

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# The number that threshold searches count: all examples, stripes included.
TOTAL = "num_examples"
# Columns that identify a search; one with two criteria has two rows.
SEARCH = ["kind", "region", "grid_size", "seed"]
# The files of a threshold study that are read, with the columns of each.
TABLES = {
    "thresholds.csv": [
        *SEARCH,
        *("criterion", "target", "num_bumps", TOTAL, "reached"),
    ],
    "slopes.csv": "kind region criterion quantity slope low high not_reached "
    "note".split(),
}
STUDY_FLAGS = "threshold.flags"
SUBSETS = ("id", "ood", "id_plus", "ood_plus", "id_test")


@dataclass(frozen=True, eq=False)
class ThresholdStudy:
    """Searches for the least number of examples that reach a target.

    Attributes:
        path: Its folder.
        thresholds: A row for each search and criterion.
        slopes: A row for each fit of a power law.
        flags: The flags of its trainings.
    """

    path: Path
    thresholds: DataFrame
    slopes: DataFrame
    flags: Flags


@dataclass(frozen=True, eq=False)
class Evidence:
    """Finished runs, with the questions that claims ask of them.

    Attributes:
        results: The runs, as `tfcomp.read_runs` reads them.
        studies: Threshold studies.
        notes: What was left out, and why.
        any_seed: True to select runs of all seeds, not those that claims name.
    """

    results: Results = Results()
    studies: Sequence[ThresholdStudy] = ()
    notes: Sequence[str] = ()
    any_seed: bool = False

    @functools.cached_property
    def runs(self) -> DataFrame:
        """The flags of each run, by its identity."""
        return self.results.runs.set_index("run")

    @functools.cached_property
    def groups(self) -> list[Group]:
        """Runs that differ in their seed alone, for pictures."""
        return group_runs(self.results.loaded)

    @functools.cached_property
    def _tables(self) -> dict[tuple[str, str], DataFrame]:
        numbers = self.results.numbers
        grouped = numbers.groupby(["name", "when"], observed=True)
        return {(str(n), str(w)): table for (n, w), table in grouped}

    def _find(self, name: str, when: str) -> DataFrame:
        return self._tables.get((name, when), self.results.numbers.iloc[:0])

    def select(self, **flags: Any) -> DataFrame:
        """Selects runs by their flags, a row for each.

        Args:
            **flags: The value of each flag; a range or a tuple has several.

        Raises:
            ValueError: If two of the runs have the same seed.
        """
        runs = self.runs
        for name, value in flags.items():
            if name == "seed" and self.any_seed:
                continue
            if name not in runs:
                return runs.iloc[:0]
            several = isinstance(value, range | tuple)
            column = runs[name]
            runs = runs[column.isin(value) if several else column == value]
        if runs["seed"].duplicated().any() and not self.any_seed:
            studies = ", ".join(sorted(runs["study"].unique()))
            raise ValueError(f"runs of several settings match: {studies}")
        return runs.drop_duplicates("seed").sort_values("seed")

    def score(self, runs: DataFrame, path: str, when: str = "end") -> Series:
        """Reads a number of each run, by seed; NaN where a run lacks it.

        Args:
            runs: Rows of `select`.
            path: The name of the number, as `ood/mse` or `axis_ratio`.
            when: `start` for the untrained network, or `end`.
        """
        subset, _, name = path.partition("/")
        if subset not in SUBSETS:
            subset, name = "all", path
        table = self._find(name, when)
        table = table[(table["subset"] == subset) & (table["stage"] == "")]
        values = table.set_index("run")["value"].reindex(runs.index)
        return values.set_axis(runs["seed"])

    def stages(self, runs: DataFrame, name: str, when: str = "end") -> Any:
        """Reads a number of every stage [seeds, stages], in order."""
        table = self._find(name, when)
        table = table[table["run"].isin(runs.index) & (table["stage"] != "")]
        wide = table.pivot(index="run", columns="stage", values="value")
        names = sorted(map(str, set(wide) - {"code", "image"}))
        columns = ["code", *(names or ["stage_0"]), "image"]
        wide = wide.reindex(index=runs.index, columns=columns)
        return wide.set_axis(runs["seed"], axis=0)

    def fitted(self, runs: DataFrame) -> DataFrame:
        """Keeps the runs that fit: ID relative MSE below .05."""
        return runs[(self.score(runs, "id/relative_mse") < 0.05).to_numpy()]

    def placed(self, runs: DataFrame) -> DataFrame:
        """Keeps the runs with more than 95 % of ID peaks in place."""
        # From stripes alone a network draws a plus and not a bump: its error on
        # bumps is large however well it is trained.
        placed = self.score(runs, "id/position_accuracy") > 0.95
        return runs[placed.to_numpy()]


def read_evidence(patterns: Sequence[str], any_seed: bool = False) -> Evidence:
    """Reads all finished runs and threshold studies that patterns match.

    Args:
        patterns: Folders, at any depth, and packed files.
        any_seed: True to select runs of all seeds, not those that claims name.

    Raises:
        ConfigError: If a pattern matches nothing.
    """
    results = read_results(patterns, history=False)
    notes = list(results.notes)
    studies = []
    for folder in find_studies(patterns):
        try:
            studies.append(_read_study(folder))
        except (OSError, ValueError, RunError) as error:
            notes.append(f"{folder.name} cannot be read: {error}")
    return Evidence(results, studies, notes, any_seed)


def read_some_evidence(runs: str) -> Evidence:
    """Reads all that `--runs` matches; raises ConfigError without a match."""
    evidence = read_evidence(split_names(runs))
    if not evidence.results.loaded and not evidence.studies:
        why = f" ({evidence.notes[0]})" if evidence.notes else ""
        rule = f"must match finished runs or threshold searches{why}"
        raise ConfigError("runs", rule, runs)
    return evidence


def find_studies(patterns: Sequence[str]) -> list[Path]:
    """Lists folders with one of the tables of a threshold study."""
    return find_folders(patterns, lambda names: not names.isdisjoint(TABLES))


def _read_study(path: Path) -> ThresholdStudy:
    file = path / STUDY_FLAGS
    flags = parse_run_flags(files.read_text(file))[0] if file.exists() else {}
    thresholds, slopes = (_read_table(path / name) for name in TABLES)
    return ThresholdStudy(path, thresholds, slopes, flags)


def _read_table(path: Path) -> DataFrame:
    """Reads the columns of a table; those that it lacks are empty."""
    import pandas

    if not path.exists():
        return pandas.DataFrame(columns=TABLES[path.name])
    # "none" and "NA" are words here.
    try:
        table = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise files.DamagedFileError(path, error) from error
    if "kind" not in table:
        raise files.DamagedFileError(path, "it has no column kind")
    return table.reindex(columns=TABLES[path.name])
