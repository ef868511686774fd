"""The curves of a run as a table: `history.csv`, one row an epoch."""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tfcomp.storage.files import DamagedFileError, read_csv, write_csv
from tfcomp.storage.run_folder import HISTORY_FILE


class History:
    """Loss and scores by epoch, written after each epoch.

    A resumed run continues the file in its folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE
        self._rows = read_history(self._path)

    def copy(self, source: Path) -> None:
        """Replaces the curves by those in another folder."""
        self._rows = read_history(source / HISTORY_FILE)

    def add(self, epoch: int, numbers: Mapping[str, float | None]) -> None:
        """Adds the float32 numbers of TensorBoard, and drops later rows."""
        self._rows = {e: row for e, row in self._rows.items() if e <= epoch}
        row = self._rows.setdefault(epoch, {})
        known = {tag: x for tag, x in numbers.items() if x is not None}
        with np.errstate(over="ignore"):  # beyond float32, it is `inf`
            row.update({tag: float(np.float32(x)) for tag, x in known.items()})
        tags = dict.fromkeys(tag for row in self._rows.values() for tag in row)
        table = [{"epoch": e, **tags, **row} for e, row in self._rows.items()]
        write_csv(self._path, table)


def read_history(path: Path) -> dict[int, dict[str, float]]:
    """Reads numbers by epoch and tag; warns and returns none if damaged."""
    try:
        rows = read_csv(path) if path.exists() else []
        return {
            int(row.pop("epoch")): {
                tag: float(x) for tag, x in row.items() if x
            }
            for row in rows
        }
    except (DamagedFileError, KeyError, ValueError) as error:
        print(f"note: no curves from {path} ({error})", file=sys.stderr)
        return {}
