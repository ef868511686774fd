"""Reads and writes whole files and folders.

Writing goes through `write_atomically`, `replace_folder` or `open_log`. A file
is absent or complete, and a link in its place is replaced: what the link leads
to stays as it is.

Folders are checked and locked, and a folder has numbered versions of a
SavedModel: `<folder>/<number>/`, as TensorFlow Serving reads it. A version
appears when it is complete; until then it is `.partial-<random>`.
"""

import contextlib
import csv
import errno
import io
import json
import lzma
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from tfcomp.config.errors import ConfigError, RunError, first_line

if TYPE_CHECKING:
    import pandas as pd

# Prefix of the names of unfinished files.
PARTIAL = ".partial-"
# Of one compressed file; the largest in docs/ has 21 MB.
MAX_UNPACKED = 2**28
LOCK_FILE = ".lock"
SOFT_LOCK_FILE = ".lock.soft"
# What file systems answer that have no locks.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class DamagedFileError(RunError):
    """A file that is not as it was written; names it and one reason."""

    def __init__(self, path: Path, reason: object) -> None:
        super().__init__(f"{path} is damaged ({first_line(reason)})")


def read_text(path: Path) -> str:
    """Reads a text file; DamagedFileError if it is not UTF-8."""
    try:
        return path.read_text("utf-8-sig")  # editors of Windows begin so
    except UnicodeDecodeError as error:
        raise DamagedFileError(path, error) from error


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object; DamagedFileError if a file holds anything else."""
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, error) from error
    if not isinstance(content, dict):
        raise DamagedFileError(path, "it holds no JSON object")
    return content


def read_csv(path: Path) -> list[dict[str, str]]:
    """Reads a table; DamagedFileError if it is no table or a row is cut off."""
    text = read_text(path)
    buffer = io.StringIO(text, newline="")
    try:
        rows = list(csv.DictReader(buffer))
    except csv.Error as error:
        raise DamagedFileError(path, error) from error

    is_complete = text.endswith("\n")
    for row in rows:
        # The reader marks missing and further cells of a row by None.
        if None in row or None in row.values():
            is_complete = False
    if not is_complete:
        raise DamagedFileError(path, "its rows are incomplete")
    return rows


def read_xz(path: Path) -> bytes:
    """Returns the content of an xz file, `MAX_UNPACKED` bytes at most."""
    try:
        with lzma.open(path) as file:
            content = file.read(MAX_UNPACKED + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise DamagedFileError(path, error) from error
    if len(content) > MAX_UNPACKED:
        reason = f"it holds more than {MAX_UNPACKED >> 20} MB"
        raise DamagedFileError(path, reason)
    return content


def write_xz(path: Path, content: bytes) -> bool:
    """Compresses content to a file.

    Args:
        path: The file.
        content: What it will hold.

    Returns:
        False if the file has this content already.
    """
    preset = 9 | lzma.PRESET_EXTREME
    packed = lzma.compress(content, preset=preset)
    if path.exists() and path.read_bytes() == packed:
        return False
    write_bytes(path, packed)
    return True


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step.

    Args:
        path: The file.
        text: Its content, which is stored as UTF-8.
    """
    content = text.encode("utf-8")
    write_bytes(path, content)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one step.

    Args:
        path: The file.
        content: Its content.
    """
    with write_atomically(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Yields a new empty file that becomes `path` if the block succeeds.

    Nobody can know its name before, and it replaces a link at `path`.
    """
    partial = path.with_name(make_partial_name() + path.suffix)
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # which follows no link
    try:
        descriptor = os.open(partial, how, 0o666)
        os.close(descriptor)
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
    """Yields a new folder that replaces `parent / name` if all goes well.

    Args:
        parent: Made if it does not exist, and removed again on a failure.
        name: The name of the folder in it.
    """
    final = parent / name
    is_new = not parent.exists()
    make_folder(parent)
    partial = parent / make_partial_name()
    partial.mkdir()
    try:
        yield partial
        remove(final)
        os.rename(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_new and not os.listdir(parent):
            parent.rmdir()


def make_folder(folder: Path) -> Path:
    """Makes a folder unless it exists, perhaps as a link; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove(path: Path) -> None:
    """Removes a file, a folder, or a link and not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def open_log(path: Path) -> BinaryIO:
    """Opens a file to append to; it replaces a link, as of a data manager."""
    if path.is_symlink():
        path.unlink()
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    descriptor = os.open(path, how, 0o666)
    return open(descriptor, "ab")


def make_partial_name() -> str:
    """Returns a name of an unfinished file that cannot be guessed."""
    return f"{PARTIAL}{secrets.token_hex(8)}"


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows as a table.

    Args:
        path: The file.
        rows: Cells by column. The header has the columns of all rows.
    """
    text = io.StringIO()
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_table(path: Path, table: "pd.DataFrame") -> None:
    """Writes a table as CSV.

    Args:
        path: The file.
        table: The table; cells without a value are empty in the file.
    """
    text = table.to_csv(index=False, lineterminator="\n")
    write_text(path, text)


def check_run_folders(settings: Mapping[str, Any]) -> None:
    """Checks, from the parsed flags, both folders of a run or a sweep."""
    name = settings["run_name"]
    for flag in ("log_dir", "export_dir"):
        path = os.path.join(settings[flag], name)
        check_folder(flag, path)


def check_folder(flag: str, path: str) -> None:
    """Checks that a folder can be written or made.

    Args:
        flag: The flag that names it, for errors.
        path: The folder, which may not exist yet.

    Raises:
        ConfigError: It can be neither written nor made.
    """
    if not path:
        raise ConfigError(flag, "must name a folder", path)

    nearest = Path(path).absolute()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    is_writable = os.access(nearest, os.W_OK | os.X_OK)
    if not nearest.is_dir() or not is_writable:
        rule = "must name a folder that can be written"
        if nearest.is_symlink() and not nearest.exists():
            rule += f" ({nearest} is a link to nothing)"
        raise ConfigError(flag, rule, path)


@contextlib.contextmanager
def lock_folder(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Locks a folder during the block, or until the process dies.

    File systems without locks (Lustre, some of NFS) get a file that names the
    process. If the process is dead, the next one on the same machine takes the
    file over; for a machine that died, the user has to remove it.

    Args:
        folder: An existing folder.
        wait: Whether to wait until the folder is free.

    Raises:
        RunError: Another process works there, and `wait` is False.
    """
    # It stays: removing it would let two processes lock two files of this name.
    file = folder / LOCK_FILE
    if file.is_symlink():  # of a data manager
        file.unlink()
    lock: BaseFileLock = FileLock(file, fallback_to_soft=False)
    hint = ""
    try:
        try:
            lock.acquire(blocking=wait)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            lock = SoftFileLock(folder / SOFT_LOCK_FILE)
            hint = f"; if there is none, remove {lock.lock_file}"
            lock.acquire(blocking=wait)
    except Timeout as error:
        reason = f"another process is working in {folder}{hint}"
        raise RunError(reason) from error

    try:
        yield
    finally:
        lock.release()


def list_versions(folder: str | Path) -> list[Path]:
    """Returns complete versions in a folder, oldest first."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    versions = []
    for path in folder.iterdir():
        name = path.name
        # `isdigit` accepts digits that `int` does not, such as ².
        if name.isascii() and name.isdigit():
            versions.append(path)
    return sorted(versions, key=lambda path: int(path.name))


def add_version(
    folder: Path,
    write: Callable[[Path], object],
    is_same: Callable[[Path], bool],
) -> tuple[Path, bool]:
    """Adds a version of a model unless the last one has it already.

    Args:
        folder: The parent of the versions; made if it does not exist.
        write: Writes the model into an empty folder.
        is_same: Tells whether a version has this model.

    Returns:
        The version that has the model, and whether it was written now.
    """
    make_folder(folder)
    with lock_folder(folder, wait=True):
        for left in folder.glob(f"{PARTIAL}*"):
            remove(left)  # of a process that was killed

        number = 1
        versions = list_versions(folder)
        if versions:
            last = versions[-1]
            if is_same(last):
                return last, False
            number = int(last.name) + 1

        name = str(number)
        with replace_folder(folder, name) as partial:
            write(partial)
        return folder / name, True
