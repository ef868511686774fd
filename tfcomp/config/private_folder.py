"""A folder for what is needed only as long as a process runs.

Nobody else can enter it, so that nobody else can put files where Python, Dask
or TensorFlow look for theirs. It is removed at the end of the process, also if
that is told to stop; what a process that was killed has left behind is removed
by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tfcomp-"
MAKE_SECONDS = 3600  # enough for a folder to get its file
ALIVE = ".alive"  # locked as long as the process runs


@contextlib.contextmanager
def make_private_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new folder, removed at the end of the block.

    Args:
        parent: Where it is made; None is among the temporary files.

    Raises:
        OSError: If none can be made.
    """
    clear_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # mode 0700
    try:
        with open(folder / ALIVE, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield folder
            finally:
                _remove(folder)  # while it is locked: nobody else does
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # of a disk without room for the file


@contextlib.contextmanager
def use_private_folder() -> Iterator[None]:
    """Puts all temporary files of the block, and of its processes, into one.

    Where no folder can be made the block runs without: what needs one says so.
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
    """Removes folders of this user whose process is gone."""
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_ours(folder) and not _is_alive(folder):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a folder, the file that tells whose it is at the very end.

    A process that is about to die may still write there: then the file stays,
    and the next command finds the folder again.
    """
    for path in [p for p in folder.iterdir() if p.name != ALIVE]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    if os.listdir(folder) in ([], [ALIVE]):
        shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()  # a link may lead anywhere
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return private and found.st_uid == os.geteuid()


def _is_alive(folder: Path) -> bool:
    if not (folder / ALIVE).exists():  # its process is about to make it
        return time.time() - folder.stat().st_mtime < MAKE_SECONDS
    with open(folder / ALIVE, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
