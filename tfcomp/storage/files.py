"""Files that are either absent or complete, never partial."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    import pandas as pd


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one step."""
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows, with the keys of the first one as the header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Writes a table as CSV; cells without a value are empty."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))
