"""Threshold studies: the tables of `tfcomp study thresholds`, by folder.

Two studies may differ in their target, or in how long they train: their
numbers do not go into one slope, or one mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.storage.files import DamagedFileError, read_text
from tfcomp.storage.run_search import find_folders
from tfcomp.studies.claims.flag_text import Flags, parse_run_flags

if TYPE_CHECKING:
    from pandas import DataFrame

# The number that is counted: all examples, stripes included.
TOTAL = "num_examples"
# What identifies a search; one with two criteria has two rows.
SEARCH = ["kind", "region", "grid_size", "seed"]
THRESHOLDS = [*SEARCH, "criterion", "num_bumps", TOTAL, "reached"]
SLOPES = [
    *["kind", "region", "criterion", "quantity"],
    *["slope", "low", "high", "not_reached", "note"],
]
# The files that are read, with the columns of each.
TABLES = {"thresholds.csv": THRESHOLDS, "slopes.csv": SLOPES}


@dataclass(frozen=True, eq=False)
class ThresholdStudy:
    """The tables of one folder.

    Attributes:
        path: The folder.
        thresholds: `thresholds.csv`, a row for each search and criterion.
        slopes: `slopes.csv`, a row for each fit.
        flags: All its flags; empty if the folder has none.
    """

    path: Path
    thresholds: DataFrame
    slopes: DataFrame
    flags: Flags = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The folder, with the one that it is in."""
        return "/".join(self.path.parts[-2:]).lstrip("/")


def find_studies(patterns: Sequence[str]) -> list[Path]:
    """Folders with one of the tables, in order."""
    return find_folders(patterns, lambda files: not files.isdisjoint(TABLES))


def read_study(path: Path) -> ThresholdStudy:
    """Reads the files of one study; one that is not there is empty.

    Raises:
        DamagedFileError: If one of them is damaged.
        ValueError: If a flag has an impossible value.
    """
    file = path / "threshold.flags"
    flags: Flags = {}
    if file.exists():
        flags, _ = parse_run_flags(read_text(file))
    tables = [_read_table(path / n, columns) for n, columns in TABLES.items()]
    return ThresholdStudy(path, *tables, flags)


def count_searches(studies: Iterable[ThresholdStudy]) -> int:
    """Number of searches in all studies."""
    tables = [study.thresholds for study in studies]
    return sum(len(table[SEARCH].drop_duplicates()) for table in tables)


def _read_table(path: Path, columns: Sequence[str]) -> DataFrame:
    """Some columns of a table; those that it lacks are empty."""
    import pandas

    if not path.exists():
        return pandas.DataFrame(columns=columns)
    # "none" and "NA" are words here.
    try:
        table = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise DamagedFileError(path, error) from error
    if "kind" not in table:
        raise DamagedFileError(path, "it has no column kind")
    return table.reindex(columns=columns)
