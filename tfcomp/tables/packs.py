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
from collections.abc import Iterable, Sequence
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
    """Returns packed files that patterns match, or that lie in such folders."""
    found = [
        Path(match)
        for pattern in patterns
        for match in glob.iglob(os.path.expanduser(pattern), recursive=True)
    ]
    folders = find_folders(
        patterns, lambda names: any(n.endswith(ENDING) for n in names)
    )
    found += [folder / n for folder in folders for n in os.listdir(folder)]
    return sorted(
        {path.resolve() for path in found if path.name.endswith(ENDING)}
    )


def read_pack(path: Path) -> list[Run]:
    """Reads the runs of a packed file; DamagedFileError if it is none."""
    try:
        text = io.StringIO(files.read_xz(path).decode(), newline="")
        head, *lines = csv.reader(text, strict=True)
        if missing := {"name", "seed"}.difference(head):
            raise ValueError(f"it has no column {min(missing)}")
        if any(len(line) != len(head) for line in lines):
            raise ValueError("its rows are not of equal length")
        study = path.name.removesuffix(ENDING)
        runs = [_restore(study, zip(head, line, strict=True)) for line in lines]
        if len({run.row["run"] for run in runs}) < len(runs):
            raise ValueError("it has a run twice")
        return runs
    except (OSError, ValueError, csv.Error) as error:
        raise DamagedFileError(path, error) from error


def _restore(study: str, cells: Iterable[tuple[str, str]]) -> Run:
    """Returns a run, whose flags have types."""
    texts, numbers = {}, []
    for column, text in cells:
        if "|" not in column:
            texts[column] = text
        elif text:
            value = math.nan if text == NULL else float(text)
            numbers.append((*_split(column), value))
    flags = dict(flatten.get_defaults())
    known = {*flatten.IDENTITY, *flatten.ORIGIN, flatten.MEASURED}
    for name in [name for name in texts if name not in known]:
        if texts[name] or name in flags:  # a run lacks flags of other versions
            flags[name] = flatten.parse_value(name, texts[name])
    flags["seed"] = int(texts["seed"])
    measured = texts.get(flatten.MEASURED, "")
    row = flatten.describe_run(flags, "", study, texts, measured)
    return Run(row | {"name": texts["name"]}, numbers)


@functools.cache
def _split(column: str) -> tuple[str, str, str, str]:
    when, subset, stage, name = column.split("|", 3)
    return when, subset, stage, name
