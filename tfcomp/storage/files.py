"""Reads and writes files that others may have prepared to do harm.

Writing goes through `write_whole`, `replace_folder` or `open_log`: a file is
absent or complete. No link is followed below the folder that the user named.
"""

import contextlib
import csv
import io
import json
import lzma
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tfcomp.config.errors import RunError, first_line

if TYPE_CHECKING:
    import pandas as pd

# Prefix of the names of unfinished files.
PARTIAL = ".partial-"
MAX_TEXT = 2**27  # bytes; `metrics.json` has some 100 kB
# Of one compressed file; the largest in docs/ has 21 MB.
MAX_UNPACKED = 2**28


class DamagedFileError(RunError):
    """A file that is not as it was written; names it and one reason."""

    def __init__(self, path: Path, reason: object) -> None:
        super().__init__(f"{path} is damaged ({first_line(reason)})")


class LinkError(RunError):
    """A link where tfcomp writes or removes files."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is a link, and tfcomp writes through no links: remove "
            "it, or copy the folder by `cp -rL`"
        )


def check_file(path: Path, limit: int = 2**62) -> None:
    """Raises a DamagedFileError for a pipe, a device, or too many bytes."""
    if not path.exists() or path.is_dir():
        return
    if not path.is_file():
        raise DamagedFileError(path, "it is a pipe or a device")
    if path.stat().st_size > limit:
        raise DamagedFileError(path, f"it has more than {limit >> 20} MB")


def read_text(path: Path) -> str:
    """Reads a text file; DamagedFileError if it is not UTF-8 or too large."""
    check_file(path, MAX_TEXT)
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedFileError(path, error) from error


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object; DamagedFileError if a file holds anything else."""
    try:
        content = json.loads(read_text(path), parse_int=_parse_integer)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, error) from error
    if not isinstance(content, dict):
        raise DamagedFileError(path, "it holds no JSON object")
    return content


def _parse_integer(text: str) -> int:
    if math.isinf(float(text)):
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Reads a table; DamagedFileError if it is none or a row is cut off."""
    text = read_text(path)
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise DamagedFileError(path, error) from error
    cells = (cell for row in rows for cell in (*row, *row.values()))
    if not text.endswith("\n") or None in cells:
        raise DamagedFileError(path, "its rows are incomplete")
    return rows


def read_xz(path: Path) -> bytes:
    """Returns the content of an xz file, `MAX_UNPACKED` bytes at most."""
    check_file(path, MAX_UNPACKED)
    decompressor = lzma.LZMADecompressor(memlimit=MAX_UNPACKED)
    try:
        content = decompressor.decompress(path.read_bytes(), MAX_UNPACKED)
    except (lzma.LZMAError, EOFError) as error:
        raise DamagedFileError(path, error) from error
    if not decompressor.eof:
        reason = "it ends too early"
        if not decompressor.needs_input:
            reason = f"it holds more than {MAX_UNPACKED >> 20} MB"
        raise DamagedFileError(path, reason)
    return content


def write_xz(path: Path, content: bytes) -> bool:
    """Compresses content to a file; returns False if it has it already."""
    packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    if path.exists() and path.read_bytes() == packed:
        return False
    write_bytes(path, packed)
    return True


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one step."""
    with write_whole(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Yields a new empty file that becomes `path` if the block succeeds."""
    refuse_link(path)
    partial = path.with_name(make_partial_name() + path.suffix)
    try:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        os.close(os.open(partial, how, 0o666))
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


@contextlib.contextmanager
def replace_folder(parent: Path, name: str) -> Iterator[Path]:
    """Yields a new folder that replaces `parent / name` if all goes well."""
    final, is_new = parent / name, not parent.exists()
    refuse_links_between(parent, final)
    make_folder(parent)
    partial = parent / make_partial_name()
    partial.mkdir()
    try:
        yield partial
        shutil.rmtree(final, ignore_errors=True)
        make_folder(final.parent)
        os.rename(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_new and not os.listdir(parent):
            parent.rmdir()


def make_folder(folder: Path) -> Path:
    """Makes a folder that the user named, which may be a link; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_subfolder(parent: Path, name: str | Path) -> Path:
    """Makes and returns a folder; LinkError if one below `parent` is a link."""
    folder = parent / name
    refuse_links_between(parent, folder)
    return make_folder(folder)


def open_log(path: Path) -> BinaryIO:
    """Opens a file to append to; LinkError if it or its folder is a link."""
    refuse_links_between(path.parent.parent, path)
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    return open(os.open(path, how, 0o666), "ab")


def refuse_link(path: Path) -> None:
    """Raises a LinkError if a path is a link."""
    if path.is_symlink():
        raise LinkError(path)


def refuse_links_between(root: Path, path: Path) -> None:
    """Raises a LinkError if a path below a root leads through a link."""
    for part in (path, *path.parents):
        if part == root:
            break
        refuse_link(part)


def refuse_links(folder: Path, depth: int | None = None) -> None:
    """Raises a LinkError for a link in a folder: libraries would follow it."""
    for place, below, names in os.walk(folder):
        for name in (*below, *names):
            refuse_link(Path(place, name))
        if depth and len(Path(place).relative_to(folder).parts) + 1 >= depth:
            below.clear()


def make_partial_name() -> str:
    """Returns a name of an unfinished file that cannot be guessed."""
    return f"{PARTIAL}{secrets.token_hex(8)}"


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows, with the keys of all as the header."""
    text, columns = io.StringIO(), dict.fromkeys(k for row in rows for k in row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_table(path: Path, table: "pd.DataFrame") -> None:
    """Writes a table as CSV; cells without a value are empty."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))
