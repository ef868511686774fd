"""Threshold studies: the least number of examples that reach a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.flagfiles import expand_flagfiles
from tfcomp.storage.files import DamagedFileError, read_text
from tfcomp.storage.run_search import find_folders
from tfcomp.tables.flatten import Flags, parse_run_flags

if TYPE_CHECKING:
    from pandas import DataFrame

# The number that is counted: all examples, stripes included.
TOTAL = "num_examples"
# What identifies a search; one with two criteria has two rows.
SEARCH = ["kind", "region", "grid_size", "seed"]
# The files that are read, with the columns of each.
TABLES = {
    "thresholds.csv": [
        *SEARCH,
        *("criterion", "target", "num_bumps", TOTAL, "reached"),
    ],
    "slopes.csv": "kind region criterion quantity slope low high not_reached "
    "note".split(),
}
STUDY_FLAGS = "threshold.flags"
STUDY_FILES = (STUDY_FLAGS, *TABLES)


def read_flagfile(line: str) -> Flags:
    """Returns all flags of a study, from a flagfile and flags that follow."""
    lines = expand_flagfiles(f"--flagfile={line}".split())
    return parse_run_flags("\n".join(lines))[0]


@dataclass(frozen=True, eq=False)
class ThresholdStudy:
    """Tables of a folder: a row a search and criterion, a row a fit.

    The flags are empty if the folder has none.
    """

    path: Path
    thresholds: DataFrame
    slopes: DataFrame
    flags: Flags = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.name


def find_studies(patterns: Sequence[str]) -> list[Path]:
    """Returns folders with one of the tables."""
    return find_folders(patterns, lambda files: not files.isdisjoint(TABLES))


def read_study(path: Path) -> ThresholdStudy:
    """Reads a study, which may lack files; DamagedFileError, or ValueError."""
    file = path / STUDY_FLAGS
    flags = parse_run_flags(read_text(file))[0] if file.exists() else {}
    thresholds, slopes = (
        _read_table(path / name, columns) for name, columns in TABLES.items()
    )
    return ThresholdStudy(path, thresholds, slopes, flags)


def count_searches(studies: Iterable[ThresholdStudy]) -> int:
    """Returns the number of searches in all studies."""
    return sum(len(s.thresholds[SEARCH].drop_duplicates()) for s in studies)


def _read_table(path: Path, columns: list[str]) -> DataFrame:
    """Reads some columns of a table; those that it lacks are empty."""
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
