"""The evidence: finished runs as two tables, and threshold searches."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import split_names
from tfcomp.storage.run_folder import find_folders
from tfcomp.tables.flatten import ALL
from tfcomp.tables.read import Results, read_results

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SEARCHES = "thresholds.csv"  # the table of a threshold study
SEARCH_COLUMNS = [
    "kind",
    "criterion",
    "grid_size",
    "seed",
    "num_examples",
    "reached",
    "target",
]
NAMES = ["study", "folder", "setting", "seed"]


@dataclass(frozen=True, eq=False)
class Networks:
    """Networks of one setting, whose numbers are read by seed.

    Attributes:
        evidence: All runs.
        runs: Study, folder, setting and seed of each network.
        tried: How many runs there are, fitted or not.
        when: `start` for the untrained networks, or `end`.
    """

    evidence: Evidence
    runs: DataFrame
    tried: int
    when: str = "end"

    @property
    def untrained(self) -> Networks:
        """The same networks before training."""
        return replace(self, when="start")

    @property
    def fitted(self) -> Networks:
        """The networks that fit: ID relative MSE below .05."""
        return self.keep(self.score("id/relative_mse") < 0.05)

    @property
    def placed(self) -> Networks:
        """The networks with more than 95 % of ID peaks within one pixel."""
        # From stripes alone a network draws a plus and not a bump: its error on
        # bumps is large however well it is trained.
        return self.keep(self.score("id/position_accuracy") > 0.95)

    def keep(self, is_kept: Series) -> Networks:
        """Keeps some of the networks.

        Args:
            is_kept: True for those to keep, in the order of the runs.
        """
        return replace(self, runs=self.runs[is_kept.to_numpy()])

    def read(self, number: Reader) -> Series:
        """Reads a number of each network, by seed.

        Args:
            number: The path of a score, or a function of networks.
        """
        if isinstance(number, str):
            return self.score(number)
        return number(self)

    def score(self, path: str) -> Series:
        """Reads a score of each network, by seed; NaN where a run lacks it.

        Args:
            path: The name of the score, as `ood/mse` or `axis_ratio`.
        """
        from pandas import Series

        numbers = self.evidence.numbers[self.when, path].get("", {})
        values = [numbers.get(run, math.nan) for run in self.runs.index]
        return Series(values, self.runs["seed"], dtype=float)

    def stages(self, name: str) -> DataFrame:
        """Reads a number of every stage, in the order of the stages.

        Args:
            name: The name of the number, as `factorization`.

        Returns:
            A row for each seed, a column for each stage; NaN where a run lacks
            the number.
        """
        from pandas import DataFrame

        runs = self.runs.index
        by_stage = self.evidence.numbers[self.when, name]
        hidden = []
        for stage in sorted(by_stage.keys() - {"", "code", "image"}):
            if not by_stage[stage].keys().isdisjoint(runs):
                hidden.append(stage)

        table = {}
        for stage in ["code", *(hidden or ["stage_0"]), "image"]:
            numbers = by_stage.get(stage, {})
            table[stage] = [numbers.get(run, math.nan) for run in runs]
        return DataFrame(table, self.runs["seed"], dtype=float)


# Numbers of one name, by stage (empty for no stage) and run.
Numbers = dict[str, dict[str, float]]
# The path of a score, or a function that reads a number by seed.
Reader = str | Callable[[Networks], "Series"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Finished runs, with the questions that claims ask of them.

    Attributes:
        results: The runs, as `tfcomp.read_runs` reads them.
        studies: Searches for the least number of examples that reach a target,
            as tables by the name of their study.
        notes: What was left out, and why.
        any_seed: True to select runs of all seeds, not those that claims name.
    """

    results: Results = Results()
    studies: Mapping[str, DataFrame] = field(default_factory=dict)
    notes: Sequence[str] = ()
    any_seed: bool = False

    @functools.cached_property
    def runs(self) -> DataFrame:
        """Study, folder, setting and seed of each run, by its identity."""
        return self.results.runs.set_index("run")[NAMES]

    @functools.cached_property
    def numbers(self) -> Mapping[tuple[str, str], Numbers]:
        """All numbers, by `start` or `end` and their path, as `ood/mse`."""
        numbers: defaultdict[tuple[str, str], Numbers] = defaultdict(dict)
        for run in self.results.loaded:
            key = run.row["run"]
            for when, subset, stage, name, value in run.numbers:
                path = name
                if subset != ALL:
                    path = f"{subset}/{name}"
                by_stage = numbers[when, path]
                by_stage.setdefault(stage, {})[key] = value
        return numbers

    def match(self, **flags: Any) -> DataFrame:
        """Returns study, folder, setting and seed of each run with these flags.

        Args:
            **flags: The value of each flag; a range or a tuple has several.
        """
        if self.any_seed:
            flags.pop("seed", None)
        rows = [run.row for run in self.results.loaded]
        for name, value in flags.items():
            values = value if isinstance(value, range | tuple) else (value,)
            rows = [row for row in rows if row.get(name) in values]
        names = [row["run"] for row in rows]
        return self.runs.loc[names]

    def select(self, **flags: Any) -> Networks:
        """Selects the networks of one setting, as `match`, by seed.

        Args:
            **flags: The value of each flag; a range or a tuple has several.

        Raises:
            ValueError: If two of the runs have the same seed.
        """
        runs = self.match(**flags)
        if self.any_seed:
            runs = runs.drop_duplicates("seed")
        if runs["seed"].duplicated().any():
            studies = ", ".join(sorted(runs["study"].unique()))
            raise ValueError(f"runs of several settings match: {studies}")
        return Networks(self, runs.sort_values("seed"), tried=len(runs))


def read_evidence(patterns: Sequence[str], any_seed: bool = False) -> Evidence:
    """Reads all finished runs and threshold studies that patterns match.

    Args:
        patterns: Folders, at any depth, and packed files.
        any_seed: True to select runs of all seeds, not those that claims name.

    Raises:
        ConfigError: If a pattern matches nothing.
    """
    import pandas as pd

    results = read_results(patterns, history=False)
    notes = list(results.notes)
    studies = {}
    for folder in find_studies(patterns):
        try:
            table = pd.read_csv(folder / SEARCHES, usecols=SEARCH_COLUMNS)
            studies[folder.name] = table
        except ValueError as error:
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
    """Finds the folders of threshold studies, in the order of names."""
    return find_folders(patterns, lambda names: SEARCHES in names)
