"""Checks and locks folders, and adds numbered versions of a SavedModel.

`<folder>/<number>/` is a version, as TensorFlow Serving reads it. It appears
when it is complete; until then it is `.partial-<random>`.
"""

import contextlib
import errno
import filecmp
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import PARTIAL, make_folder, remove, replace_folder

LOCK_FILE = ".lock"
SOFT_LOCK_FILE = f"{LOCK_FILE}.soft"
# What file systems answer that have no locks.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def check_run_folders(settings: Mapping[str, Any]) -> None:
    """Checks, from the parsed flags, both folders of a run or a sweep."""
    for flag in ("log_dir", "export_dir"):
        check_folder(flag, os.path.join(settings[flag], settings["run_name"]))


def check_folder(flag: str, path: str) -> None:
    """Raises a ConfigError if a folder can be neither written nor made."""
    if not path:
        raise ConfigError(flag, "must name a folder", path)
    absolute = Path(path).absolute()
    nearest = next(filter(os.path.lexists, [absolute, *absolute.parents]))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(flag, "must name a folder that can be written", path)


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
    lock: BaseFileLock = FileLock(folder / LOCK_FILE, fallback_to_soft=False)
    hint = ""
    try:
        is_locked = _try_lock(lock)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        lock = SoftFileLock(folder / SOFT_LOCK_FILE)
        hint = f"; if there is none, remove {lock.lock_file}"
        is_locked = _try_lock(lock)

    if not is_locked:
        reason = f"another process is working in {folder}{hint}"
        if not wait:
            raise RunError(reason)
        if hint:
            print(f"note: {reason}", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _try_lock(lock: BaseFileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def list_versions(folder: str | Path) -> list[Path]:
    """Returns complete versions in a folder, oldest first."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    # `isdigit` accepts digits that `int` does not, such as ².
    names = [path.name for path in folder.iterdir() if path.name.isascii()]
    return [folder / n for n in sorted(filter(str.isdigit, names), key=int)]


def add_version(
    folder: Path,
    write: Callable[[Path], object],
    is_same: Callable[[Path], bool],
) -> tuple[Path, bool]:
    """Returns the version that has a model, and whether it was written now."""
    make_folder(folder)
    with lock_folder(folder, wait=True):
        for left in folder.glob(f"{PARTIAL}*"):
            remove(left)  # of a process that was killed
        versions = list_versions(folder)
        if versions and is_same(versions[-1]):
            return versions[-1], False
        number = int(versions[-1].name) + 1 if versions else 1
        with replace_folder(folder, str(number)) as partial:
            write(partial)
        return folder / str(number), True


def is_copy(version: Path, model: Path) -> bool:
    """Checks whether a version has all files of a model, byte for byte."""
    files = [p.relative_to(model) for p in model.rglob("*") if p.is_file()]
    same, _, _ = filecmp.cmpfiles(version, model, files, shallow=False)
    return bool(files) and len(same) == len(files)
