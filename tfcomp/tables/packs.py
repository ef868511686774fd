"""Packed runs: `<study>.csv.xz`, one file a study and one row a run.

Its columns are flags and versions, and then numbers, whose names say when, of
which subset and stage: `end|ood||mse`, `start|all|stage_0|factorization`. Cells
without a number are empty; a null of the run is `null`. All digits are kept.
"""

from __future__ import annotations

import csv
import functools
import glob
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfcomp.storage import files
from tfcomp.storage.files import DamagedFileError
from tfcomp.storage.run_folder import find_folders
from tfcomp.tables import flatten
from tfcomp.tables.flatten import Run

ENDING = ".csv.xz"
KEYS = ["run", "when", "subset", "stage", "name"]
NULL = "null"


def find_packs(patterns: Sequence[str]) -> list[Path]:
    """Finds packed files that patterns match, or that lie in such folders."""
    paths = []
    for pattern in patterns:
        pattern = os.path.expanduser(pattern)
        for match in glob.iglob(pattern, recursive=True):
            paths.append(Path(match))

    def has_pack(names: set[str]) -> bool:
        return any(name.endswith(ENDING) for name in names)

    for folder in find_folders(patterns, has_pack):
        paths += folder.iterdir()
    packs = {path.resolve() for path in paths if path.name.endswith(ENDING)}
    return sorted(packs)


def read_pack(path: Path) -> list[Run]:
    """Reads the runs of a packed file.

    Raises:
        DamagedFileError: If the file is not one.
    """
    try:
        text = files.read_xz(path).decode()
        head, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        missing = {"name", "seed"}.difference(head)
        if missing:
            raise ValueError(f"it has no column {min(missing)}")
        if any(len(line) != len(head) for line in lines):
            raise ValueError("its rows are not of equal length")

        study = path.name.removesuffix(ENDING)
        runs = []
        for line in lines:
            cells = dict(zip(head, line, strict=True))
            runs.append(_restore(study, cells))
        if len({run.row["run"] for run in runs}) < len(runs):
            raise ValueError("it has a run twice")
        return runs
    except (OSError, ValueError, csv.Error) as error:
        raise DamagedFileError(path, error) from error


def _restore(study: str, cells: Mapping[str, str]) -> Run:
    """Restores a run, whose flags have types.

    Args:
        study: Name of the pack.
        cells: Texts by column.
    """
    texts = {}
    numbers = []
    for column, text in cells.items():
        if "|" not in column:
            texts[column] = text
        elif text:
            value = math.nan if text == NULL else float(text)
            when, subset, stage, name = _split(column)
            numbers.append((when, subset, stage, name, value))

    flags = dict(flatten.get_defaults())
    no_flags = {*flatten.IDENTITY, *flatten.ORIGIN, flatten.MEASURED}
    for name, text in texts.items():
        if name in no_flags:
            continue
        if text or name in flags:  # a run lacks flags of other versions
            flags[name] = flatten.parse_value(name, text)
    flags["seed"] = int(texts["seed"])
    row = flatten.describe_run(
        flags,
        study=study,
        origin=texts,
        measured=texts.get(flatten.MEASURED, ""),
    )
    row["name"] = texts["name"]
    return Run(row, numbers)


@functools.cache
def _split(column: str) -> tuple[str, str, str, str]:
    when, subset, stage, name = column.split("|", 3)
    return when, subset, stage, name
