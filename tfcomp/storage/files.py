"""Files that are either absent or complete, never partial."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    import pandas as pd

# What the names of unfinished files begin with.
PARTIAL = ".partial-"


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one step."""
    with write_whole(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Gives a path to write to, which becomes `path` when the block ends.

    If the block fails, `path` is as it was, and nothing else takes up room.

    Raises:
        OSError: If the system refuses it; names `path`.
    """
    partial = path.with_name(f"{PARTIAL}{path.name}")
    try:
        yield partial
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and error.strerror:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


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
