"""The curves of a run as a table: `history.csv`, one row an epoch."""

import sys
from collections.abc import Mapping, Set
from pathlib import Path

import numpy as np

from tfcomp.storage.files import (
    DamagedFileError,
    open_log,
    read_csv,
    write_csv,
)
from tfcomp.storage.run_folder import HISTORY_FILE


class History:
    """Loss and scores by epoch, written after each epoch.

    A resumed run continues the file in its folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE
        self._rows = read_history(self._path)
        self._tags: Set[str] = frozenset()  # columns of what was written

    def copy(self, source: Path) -> None:
        """Replaces the curves by those in another folder."""
        self._rows = read_history(source / HISTORY_FILE)
        self._tags = frozenset()

    def add(self, epoch: int, numbers: Mapping[str, float | None]) -> None:
        """Adds the float32 numbers of TensorBoard, and drops later rows."""
        known = {tag: x for tag, x in numbers.items() if x is not None}
        with np.errstate(over="ignore"):  # beyond float32, it is `inf`
            row = {tag: float(np.float32(x)) for tag, x in known.items()}
        # Writing all rows after each of a thousand epochs would take seconds.
        is_next = epoch > max(self._rows, default=epoch)
        if is_next and self._tags >= row.keys():
            self._rows[epoch] = row
            cells = [str(row.get(tag, "")) for tag in self._tags]
            with open_log(self._path) as file:
                file.write(f"{epoch},{','.join(cells)}\n".encode())
            return
        self._rows = {e: old for e, old in self._rows.items() if e <= epoch}
        self._rows[epoch] = self._rows.get(epoch, {}) | row
        self._write()

    def _write(self) -> None:
        rows = self._rows.items()
        self._tags = dict.fromkeys(tag for _, row in rows for tag in row).keys()
        empty = dict.fromkeys(self._tags)
        table = [{"epoch": epoch, **empty, **row} for epoch, row in rows]
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
