"""A folder for the temporary files of a process, which only its user can enter.

Others can put no file where Python, Dask or TensorFlow look for theirs. The
folder is removed at the end. A folder that a killed process left is removed by
the next command, if it carries our mark: a file that names folder and host.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tfcomp-"
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")  # as `mkdtemp` makes them
MARK_FILE = ".alive"  # locked as long as the process runs
_YOUNG = ".young"  # the same file before it is locked


@contextlib.contextmanager
def make_private_folder(parent: Path | None = None) -> Iterator[Path]:
    """Makes a folder, by default among temporary files, for one block.

    Raises:
        OSError: If none can be made.
    """
    clear_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # mode 0700
    try:
        with open(folder / _YOUNG, "xb") as lock:
            lock.write(_format_mark(folder))
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(folder / _YOUNG, folder / MARK_FILE)
            try:
                yield folder
            finally:
                with contextlib.suppress(OSError):  # it may be gone already
                    _remove(folder)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # of a disk without room for the mark


@contextlib.contextmanager
def use_private_folder() -> Iterator[None]:
    """Puts temporary files of this process and its children into one folder.

    Where no folder can be made, the block runs without.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(make_private_folder())
        except OSError:
            yield
            return
        before = os.environ.get("TMPDIR"), tempfile.tempdir
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before[1]
            if before[0] is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before[0]


def clear_abandoned(parent: Path | None = None) -> None:
    """Removes folders with our mark whose process has ended."""
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if not _NAME.fullmatch(folder.name) or not _is_private(folder):
                continue
            how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with open(os.open(folder / MARK_FILE, how), "rb") as mark:
                if mark.read(4096) == _format_mark(folder):
                    # Raises an OSError while the process runs.
                    fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)


def _format_mark(folder: Path) -> bytes:
    """Returns the content of the mark of a folder.

    It names the host, as locks of other hosts may not be seen here.
    """
    text = f"Temporary files of tfcomp: {folder.name} on {socket.gethostname()}"
    return f"{text}\n".encode(errors="replace")


def _is_private(folder: Path) -> bool:
    found = folder.lstat()  # a link may lead anywhere
    closed = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return closed and found.st_uid == os.geteuid()


def _remove(folder: Path) -> None:
    """Removes a folder, and its mark last.

    A process that is about to end may still write there. Then the mark stays,
    and the next command finds the folder.
    """
    for path in [p for p in folder.iterdir() if p.name != MARK_FILE]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    if os.listdir(folder) in ([], [MARK_FILE]):
        shutil.rmtree(folder, ignore_errors=True)
