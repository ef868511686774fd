"""Runs of one setting by seed, and their numbers as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.tables.flatten import END, MEASURED, Flags

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Numbers by when and path, then by stage and seed.
Columns = dict[tuple[str, str], dict[str, dict[int, float]]]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ in their seed alone, in its order; none if none match.

    Attributes:
        flags: The flags that they share.
        runs: Their rows in the table of runs, by seed.
        columns: Their numbers.
        differences: From a published setting, as `depth=6`.
        others: Settings that matched as well, with their number of seeds.
    """

    flags: Flags = field(default_factory=dict)
    runs: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def seeds(self) -> list[int]:
        return list(self.runs)

    def keep(self, seeds: Collection[int]) -> Group:
        """Returns the runs of some seeds."""
        kept = {seed: run for seed, run in self.runs.items() if seed in seeds}
        return dataclasses.replace(self, runs=kept)

    def get(self, path: str, when: str = END) -> Series:
        """Returns a number by seed, as `ood/mse`; NaN where a run lacks it."""
        import pandas as pd

        values = self.columns.get((when, path), {}).get("", {})
        return pd.Series(
            [values.get(seed, np.nan) for seed in self.runs],
            index=self.seeds,
            dtype=float,
        )

    def get_stages(self, name: str, when: str = END) -> DataFrame:
        """Returns a number of every stage [seeds, stages]; empty without it."""
        import pandas as pd

        stages = self.columns.get((when, name), {})
        columns = {
            stage: [values.get(seed, np.nan) for seed in self.runs]
            for stage, values in stages.items()
            if stage
        }
        return pd.DataFrame(columns, index=self.seeds, dtype=float)

    def get_places(self, name: str) -> DataFrame:
        """Returns a list of numbers by seed [seeds, places]."""
        return self._get_list(f"{name}/{{}}")

    @property
    def num_trainings(self) -> Series:
        """How often each training was started."""
        attempts = self._get_list("train/attempts/{}/seed")
        return attempts.notna().sum(axis=1).clip(lower=1)

    def _get_list(self, form: str) -> DataFrame:
        import pandas as pd

        columns: dict[int, Series] = {}
        while (END, path := form.format(len(columns))) in self.columns:
            columns[len(columns)] = self.get(path)
        return pd.DataFrame(columns, index=self.seeds)

    def list_versions(self) -> set[str]:
        """Returns the versions of the code that measured the runs."""
        return {r[MEASURED] for r in self.runs.values() if r[MEASURED]}
