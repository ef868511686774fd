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
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tfcomp-"
ALIVE = ".alive"  # locked as long as the process runs


@contextlib.contextmanager
def make_private_folder() -> Iterator[Path]:
    """A new folder among the temporary ones, removed at the end of the block.

    Raises:
        OSError: If none can be made.
    """
    clear_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # mode 0700
    try:
        with open(folder / ALIVE, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def clear_abandoned() -> None:
    """Removes folders of this user whose process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_ours(folder) and not _is_alive(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()  # a link may lead anywhere
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return private and found.st_uid == os.geteuid()


def _is_alive(folder: Path) -> bool:
    # Without the file its process is about to make it, or about to end.
    with open(folder / ALIVE, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
