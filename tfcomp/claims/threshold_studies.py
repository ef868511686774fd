"""Threshold studies: the tables of `python -m tfcomp.threshold`, by folder.

Two studies may differ in their target, or in how long they train: their
numbers do not go into one slope, or one mean.
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from tfcomp.claims.flag_text import Flags
from tfcomp.claims.flag_text import parse_run_flags

THRESHOLDS_FILE = "thresholds.csv"
SLOPES_FILE = "slopes.csv"
FLAGS_FILE = "threshold.flags"

Row = dict[str, Any]


@dataclass(frozen=True)
class ThresholdStudy:
    """The tables of one folder.

    Attributes:
        path: The folder.
        thresholds: Rows of `thresholds.csv`, one a search and criterion.
        slopes: Rows of `slopes.csv`.
        flags: All its flags; empty if the folder has none.
    """

    path: Path
    thresholds: tuple[Row, ...] = ()
    slopes: tuple[Row, ...] = ()
    flags: Flags = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The folder, with the one that it is in."""
        return "/".join(self.path.parts[-2:]).lstrip("/")


def find_studies(patterns: Sequence[str]) -> list[Path]:
    """Folders with one of the tables, in order."""
    found = {
        Path(folder).resolve()
        for pattern in patterns
        for match in glob.glob(os.path.expanduser(pattern), recursive=True)
        for folder, _, files in os.walk(match)
        if {THRESHOLDS_FILE, SLOPES_FILE} & set(files)
    }
    return sorted(found)


def read_study(path: Path) -> ThresholdStudy:
    """Reads the files of one study; one that is not there is empty.

    Raises:
        ValueError: If one of them is damaged.
    """
    flags: Flags = {}
    if (path / FLAGS_FILE).exists():
        flags, _ = parse_run_flags((path / FLAGS_FILE).read_text("utf-8"))
    return ThresholdStudy(
        path,
        tuple(read_table(path / THRESHOLDS_FILE)),
        tuple(read_table(path / SLOPES_FILE)),
        flags,
    )


def read_table(path: Path) -> list[Row]:
    """Rows of a CSV file; empty cells are None, no file is no rows."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return [
            {key: _read_cell(cell) for key, cell in row.items()}
            for row in csv.DictReader(file)
        ]


def count_searches(studies: Iterable[ThresholdStudy]) -> int:
    """Number of searches; one with two criteria has two rows."""
    names = ("kind", "region", "grid_size", "seed")
    return len(
        {
            (study.path, *(row.get(name) for name in names))
            for study in studies
            for row in study.thresholds
        }
    )


def _read_cell(cell: str | None) -> Any:
    if cell is None or cell == "":
        return None
    try:
        return float(cell)
    except ValueError:
        return {"True": True, "False": False}.get(cell, cell)
