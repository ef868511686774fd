"""The evidence: finished runs as two tables, and threshold searches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import split_names
from tfcomp.storage.run_folder import find_folders
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
SUBSETS = ("id", "ood", "id_plus", "ood_plus", "id_test")


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
        subset, _, name = path.partition("/")
        if subset not in SUBSETS:
            subset, name = "all", path
        table = self.evidence.find(name, self.when)
        table = table[(table["subset"] == subset) & (table["stage"] == "")]
        values = table.set_index("run")["value"].reindex(self.runs.index)
        return values.set_axis(self.runs["seed"])

    def stages(self, name: str) -> DataFrame:
        """Reads a number of every stage, in the order of the stages.

        Args:
            name: The name of the number, as `factorization`.

        Returns:
            A row for each seed, a column for each stage; NaN where a run lacks
            the number.
        """
        table = self.evidence.find(name, self.when)
        is_asked = table["run"].isin(self.runs.index)
        is_of_stage = table["stage"] != ""
        table = table[is_asked & is_of_stage]
        by_stage = table.pivot(index="run", columns="stage", values="value")

        hidden = by_stage.columns.drop(["code", "image"], errors="ignore")
        order = ["code", *(list(hidden) or ["stage_0"]), "image"]
        by_stage = by_stage.reindex(index=self.runs.index, columns=order)
        return by_stage.set_axis(self.runs["seed"], axis=0)


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
        """The flags of each run, by its identity."""
        return self.results.runs.set_index("run")

    @functools.cached_property
    def _tables(self) -> dict[Any, DataFrame]:
        grouped = self.results.numbers.groupby(["name", "when"])
        return dict(iter(grouped))

    def find(self, name: str, when: str) -> DataFrame:
        """Finds the numbers with a name, of all runs, subsets and stages.

        Args:
            name: As `factorization`.
            when: `start` or `end` of training.
        """
        return self._tables.get((name, when), self.results.numbers.iloc[:0])

    def match(self, **flags: Any) -> DataFrame:
        """Returns study, folder, setting and seed of each run with these flags.

        Args:
            **flags: The value of each flag; a range or a tuple has several.
        """
        runs = self.runs
        names = runs[NAMES]  # copies of all flags would take seconds
        is_asked = np.ones(len(runs), bool)
        for name, value in flags.items():
            if name == "seed" and self.any_seed:
                continue
            if name not in runs:
                return names.iloc[:0]
            values = value if isinstance(value, range | tuple) else [value]
            is_asked &= runs[name].isin(values).to_numpy()
        return names[is_asked]

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
            searches = pd.read_csv(folder / SEARCHES)
            studies[folder.name] = searches[SEARCH_COLUMNS]
        except (ValueError, KeyError) as error:
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
