"""Runs of one setting by seed, and their numbers as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfcomp.tables.flatten import (
    ALL,
    END,
    MEASURED,
    NO_FLAGS,
    START,
    Flags,
    describe_run,
    list_numbers,
)

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

    def untrain(self) -> Group:
        """Returns the untrained networks of the same seeds.

        Their numbers at the end are the numbers of the start, but for ID
        scores, which decide whether a run counts.
        """
        start = {key: v for key, v in self.columns.items() if key[0] == START}
        scores = {
            (when, path): numbers
            for (when, path), numbers in self.columns.items()
            if when == END and path.startswith("id/")
        }
        end = {(END, path): numbers for (_, path), numbers in start.items()}
        return dataclasses.replace(self, columns=start | end | scores)

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
        """Returns how often each training was started."""
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


def group_runs(
    rows: Iterable[Mapping[str, Any]],
    numbers: Iterable[tuple[str, str, str, str, float]],
) -> list[Group]:
    """Groups rows of runs by setting, in order of appearance.

    The numbers are tuples of run, when, path, stage and value.
    """
    settings: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        settings.setdefault(row["setting"], []).append(row)
    groups: list[Group] = []
    places: dict[str, tuple[Columns, int]] = {}
    for found in settings.values():
        runs = {row["seed"]: row for row in found}
        columns: Columns = {}
        places |= {row["run"]: (columns, s) for s, row in runs.items()}
        flags = {
            name: value
            for name, value in found[0].items()
            if name not in NO_FLAGS and value == value  # no NaN
        }
        groups.append(Group(flags, dict(sorted(runs.items())), columns))
    for run, when, path, stage, value in numbers:
        columns, seed = places[run]
        stages = columns.setdefault((when, path), {})
        stages.setdefault(stage, {})[seed] = value
    return groups


class Record(NamedTuple):
    """Run without files, as a planted one."""

    flags: Flags
    metrics: Mapping[str, Any] = {}
    measures: Mapping[str, Any] = {}


def group_records(records: Iterable[Record]) -> list[Group]:
    """Groups runs that are no files."""
    rows, numbers = [], []
    for place, (flags, metrics, measures) in enumerate(records):
        version = str(measures.get("version", ""))
        row = describe_run(f"/planted/{place}", "planted", flags, {}, version)
        rows.append(row)
        for when, subset, stage, name, value in list_numbers(metrics, measures):
            path = name if subset == ALL else f"{subset}/{name}"
            numbers.append((row["run"], when, path, stage, value))
    return group_runs(rows, numbers)
