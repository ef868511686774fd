"""Runs of one setting by seed, and their numbers as columns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfcomp.tables import flatten
from tfcomp.tables.flatten import END, Flags, Run

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
        numbers = [values.get(seed, math.nan) for seed in self.runs]
        return pd.Series(numbers, self.seeds, dtype=float)

    def get_stages(self, name: str, when: str = END) -> DataFrame:
        """Returns a number of every stage [seeds, stages]; empty without it."""
        import pandas as pd

        stages = self.columns.get((when, name), {})
        columns = {
            stage: [values.get(seed, math.nan) for seed in self.runs]
            for stage, values in stages.items()
            if stage
        }
        return pd.DataFrame(columns, self.seeds, dtype=float)

    def get_places(self, name: str) -> DataFrame:
        """Returns a list of numbers by seed [seeds, places]."""
        import pandas as pd

        columns: dict[int, Series] = {}
        while (END, path := f"{name}/{len(columns)}") in self.columns:
            columns[len(columns)] = self.get(path)
        return pd.DataFrame(columns, self.seeds)


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """Groups runs by setting, in order of appearance."""
    settings: dict[str, dict[int, Run]] = {}
    for run in runs:
        seeds = settings.setdefault(run.row["setting"], {})
        seeds[run.row["seed"]] = run
    groups: list[Group] = []
    for seeds in settings.values():
        columns: Columns = {}
        for seed, run in seeds.items():
            for when, subset, stage, name, value in run.numbers:
                path = name if subset == flatten.ALL else f"{subset}/{name}"
                stages = columns.setdefault((when, path), {})
                stages.setdefault(stage, {})[seed] = value
        rows = {seed: run.row for seed, run in sorted(seeds.items())}
        flags = {
            name: value
            for name, value in next(iter(seeds.values())).row.items()
            if name not in flatten.NO_FLAGS and value == value  # no NaN
        }
        groups.append(Group(flags, rows, columns))
    return groups
