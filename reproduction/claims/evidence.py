"""The evidence: finished runs as two tables, and threshold searches."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    def _tables(self) -> dict[tuple[str, str], DataFrame]:
        numbers = self.results.numbers
        grouped = numbers.groupby(["name", "when"], observed=True)
        return {(str(n), str(w)): table for (n, w), table in grouped}

    def _find(self, name: str, when: str) -> DataFrame:
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
            if isinstance(value, range | tuple):
                is_asked &= runs[name].isin(value).to_numpy()
            else:
                is_asked &= (runs[name] == value).to_numpy(bool)
        return names[is_asked]

    def select(self, **flags: Any) -> DataFrame:
        """Selects the runs of one setting, as `match`, by seed.

        Raises:
            ValueError: If two of the runs have the same seed.
        """
        runs = self.match(**flags)
        if self.any_seed:
            runs = runs.drop_duplicates("seed")
        if runs["seed"].duplicated().any():
            studies = ", ".join(sorted(runs["study"].unique()))
            raise ValueError(f"runs of several settings match: {studies}")
        return runs.sort_values("seed")

    def score(
        self,
        runs: DataFrame,
        path: str,
        when: str = "end",
    ) -> Series:
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

    def stages(
        self,
        runs: DataFrame,
        name: str,
        when: str = "end",
    ) -> DataFrame:
        """Reads a number of every stage, in the order of the stages.

        Args:
            runs: Rows of `select`.
            name: The name of the number, as `factorization`.
            when: `start` for the untrained network, or `end`.

        Returns:
            A row for each seed, a column for each stage; NaN where a run lacks
            the number.
        """
        table = self._find(name, when)
        is_asked = table["run"].isin(runs.index)
        is_of_stage = table["stage"] != ""
        table = table[is_asked & is_of_stage]
        by_stage = table.pivot(index="run", columns="stage", values="value")

        hidden = [str(stage) for stage in by_stage]
        hidden = sorted(set(hidden) - {"code", "image"})
        order = ["code", *(hidden or ["stage_0"]), "image"]
        by_stage = by_stage.reindex(index=runs.index, columns=order)
        return by_stage.set_axis(runs["seed"], axis=0)

    def fitted(self, runs: DataFrame) -> DataFrame:
        """Keeps the runs that fit: ID relative MSE below .05.

        Args:
            runs: Rows of `select`.
        """
        return runs[(self.score(runs, "id/relative_mse") < 0.05).to_numpy()]

    def placed(self, runs: DataFrame) -> DataFrame:
        """Keeps the runs with more than 95 % of ID peaks within one pixel.

        Args:
            runs: Rows of `select`.
        """
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
