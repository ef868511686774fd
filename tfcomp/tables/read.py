"""Reads finished runs, and the tables that earlier readers have written."""

from __future__ import annotations

import functools
import io
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import DamagedFileError, read_json, read_text
from tfcomp.storage.run_folder import (
    HISTORY_FILE,
    METRICS_FILE,
    read_flags_text,
    read_metrics,
)
from tfcomp.storage.run_search import find_runs
from tfcomp.tables import flatten
from tfcomp.tables.flatten import ALL, END, IDENTITY, MEASURED, Row
from tfcomp.tables.groups import Group, group_runs
from tfcomp.tables.packs import KEYS, find_packs, read_pack

if TYPE_CHECKING:
    from pandas import DataFrame

MEASURES_FILE = "measures.json"
OWN_METRICS = "own_measures"  # declarations of users' metrics by name


class Run(NamedTuple):
    """One run: its row, its numbers, and the metrics that its user declared."""

    row: dict[str, Any]
    numbers: list[Row]
    own_metrics: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Results:
    """Finished runs, as tables (see `tfcomp.tables`) and as groups.

    Attributes:
        rows: The rows of the table of runs.
        lists: The numbers of each run.
        notes: On runs that were skipped.
        own_metrics: Declarations of users' metrics by name.
    """

    rows: Sequence[dict[str, Any]] = ()
    lists: Sequence[Sequence[Row]] = ()
    notes: tuple[str, ...] = ()
    own_metrics: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def runs(self) -> DataFrame:
        """The table of runs."""
        import pandas as pd

        if not self.rows:
            return pd.DataFrame(columns=IDENTITY)
        return pd.DataFrame(list(self.rows))

    @functools.cached_property
    def numbers(self) -> DataFrame:
        """The table of numbers."""
        return make_numbers(self.rows, self.lists)

    @functools.cached_property
    def scores(self) -> DataFrame:
        """Numbers of whole networks at the end, [runs, paths].

        A path begins with the subset, unless that is all: `ood/mse`, `r2/ood`.
        """
        table = self.numbers
        table = table[(table["when"] == END) & (table["stage"] == "")]
        wide = table.assign(path=join_path(table)).pivot(
            index="run", columns="path", values="value"
        )
        return wide.reindex(self.runs["run"])

    @functools.cached_property
    def groups(self) -> list[Group]:
        """Runs that differ in their seed alone, in order of appearance."""
        return group_runs(self.rows, self.lists)

    @property
    def flags(self) -> dict[str, flatten.Flags]:
        """Returns the flags of each setting that decide its numbers."""
        return {
            run["setting"]: group.flags
            for group in self.groups
            for run in group.runs.values()
        }


def join_path(numbers: DataFrame) -> Any:
    """Returns names of numbers after their subset, as `ood/mse`."""
    is_all = numbers["subset"] == ALL
    joined = numbers["subset"] + "/" + numbers["name"]
    return joined.where(~is_all, numbers["name"])


def read_runs(*paths: str | Path) -> tuple[DataFrame, DataFrame]:
    """Reads finished runs, without TensorFlow.

    Args:
        *paths: Folders of runs, or folders that contain them at any depth, as
            sweeps; folders of packed tables; patterns with *.

    Returns:
        The tables `runs` and `numbers`, which `tfcomp.tables` explains.

    Raises:
        ConfigError: If nothing matches.
        RunError: If a packed table is damaged.

    Example:
        The OOD error of 20 donuts, from the evidence of a clone:

        >>> runs, numbers = tfcomp.read_runs("docs/evidence/donut_bump.csv.xz")
        >>> ood = numbers.query("subset == 'ood' and name == 'relative_mse'")
        >>> ood = ood[ood["when"] == "end"].merge(runs, on="run")
        >>> len(ood), round(float(ood["value"].median()), 2)
        (20, 0.84)
    """
    found = read_results([str(path) for path in paths])
    if not len(found.runs):
        raise ConfigError(
            "runs", "must match finished runs", ",".join(map(str, paths))
        )
    return found.runs, found.numbers


def read_results(
    patterns: Sequence[str], history: bool = True, without: Sequence[Path] = ()
) -> Results:
    """Reads finished runs; those that cannot be read are in the notes.

    Of runs with the same flags and seed, the newest is kept.

    Args:
        patterns: Folders, or packed files, with * and so on.
        history: Whether `history.csv` gives numbers of epochs.
        without: Folders below which runs are skipped.

    Raises:
        ConfigError: If a pattern matches nothing.
        RunError: If a packed file is damaged.
    """
    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    numbers: list[list[Row]] = []
    ages: list[float] = []
    own: dict[str, Any] = {}
    for folder in find_runs(patterns):
        if not set(without).isdisjoint(folder.parents):
            continue
        try:
            run = read_run(folder, history)
        except (OSError, ValueError, RunError) as error:
            notes.append(f"{folder.name} cannot be read: {error}")
            continue
        rows.append(run.row)
        numbers.append(run.numbers)
        own |= run.own_metrics
        ages.append(os.stat(folder / METRICS_FILE).st_mtime)
    for pack in find_packs(patterns):
        packed, lists = read_pack(pack)
        rows += packed
        numbers += lists
        ages += [0.0] * len(packed)
    kept = leave_out_repeats(rows, ages, notes)
    lists = [numbers[n] for n in kept]
    return Results([rows[n] for n in kept], lists, tuple(notes), own)


def read_run(folder: Path, history: bool = True) -> Run:
    """Reads one run; DamagedFileError, or ValueError for a wrong flag."""
    flags, origin = flatten.parse_run_flags(read_flags_text(folder))
    metrics = read_metrics(folder)
    measures = metrics.get("measures") or _read_measures(folder)
    sweep = folder.parents[1] if folder.parent.name == "trials" else folder
    version = str(measures.get("version", ""))
    row = flatten.describe_run(
        folder.as_posix(), sweep.name, flags, origin, version
    )
    rows = list(flatten.list_numbers(metrics, measures))
    if history and (folder / HISTORY_FILE).exists():
        rows += _list_history(folder / HISTORY_FILE)
    return Run(row, rows, metrics.get(OWN_METRICS, {}))


def _read_measures(folder: Path) -> dict[str, Any]:
    """Reads `measures.json`; empty without it, or if it is damaged."""
    try:
        return read_json(folder / MEASURES_FILE)
    except (OSError, DamagedFileError):
        return {}


def _list_history(path: Path) -> Iterable[Row]:
    import pandas as pd

    try:
        table = pd.read_csv(io.StringIO(read_text(path)))
        table = table.set_index("epoch").astype(float)
    except (KeyError, ValueError) as error:
        raise DamagedFileError(path, error) from error
    for epoch, row in table.iterrows():
        for tag, value in row.dropna().items():
            subset, _, name = str(tag).partition("/")
            if not subset.startswith(("id", "ood")):
                subset, name = ALL, str(tag)
            yield f"epoch {epoch}", subset, "", name, value


def make_numbers(
    rows: Sequence[Mapping[str, Any]], lists: Sequence[Sequence[Row]]
) -> DataFrame:
    """Makes the table of numbers from rows of runs, and the numbers of each."""
    import pandas as pd

    listed = list(itertools.chain.from_iterable(lists))
    columns = zip(*listed, strict=True) if listed else [()] * 5
    table = pd.DataFrame(dict(zip([*KEYS[1:], "value"], columns, strict=True)))
    repeated = [r["run"] for r, n in zip(rows, lists, strict=True) for _ in n]
    table.insert(0, "run", repeated)
    kinds = {"value": float} if listed else dict.fromkeys(KEYS, str)
    return table.astype(kinds)


def leave_out_repeats(
    rows: Sequence[dict[str, Any]], ages: Sequence[float], notes: list[str]
) -> list[int]:
    """Returns the places of rows of distinct runs; notes name the others.

    Of several, the newest is kept: an old one may be of other code. Of two
    that are equally old, the one with measures.
    """
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row["run"], []).append(place)
    kept = []
    for places in groups.values():
        *others, best = sorted(
            places, key=lambda n: (ages[n], bool(rows[n][MEASURED]))
        )
        kept.append(best)
        name = show_name(rows[best])
        notes += [f"{show_name(rows[n])} repeats {name}" for n in others]
    return kept


def show_name(run: Mapping[str, Any]) -> str:
    """Returns the name of a run after the one of its sweep."""
    if run["study"] == run["name"]:
        return str(run["name"])
    return f"{run['study']}/{run['name']}"
