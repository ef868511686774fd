"""One process at a time in a folder."""

import fcntl
from pathlib import Path
from typing import IO

from tfcomp.config.errors import RunError

LOCK_FILE = ".lock"


def is_locked(folder: Path) -> bool:
    """Whether a process has taken a folder and works in it."""
    try:
        with open(folder / LOCK_FILE, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def lock_folder(folder: Path, *, wait: bool = False) -> IO[bytes]:
    """Takes a folder for this process.

    Args:
        folder: A folder that exists and can be written.
        wait: Whether to wait for another process that has it.

    Returns:
        The open lock file, for a `with` statement. The folder is free again
        when the file is closed, at the latest when the process ends.

    Raises:
        RunError: If another process has it, unless `wait` is set.
    """
    # The file stays: removing it would let two processes lock two files of
    # this name.
    file = open(folder / LOCK_FILE, "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException as error:
        file.close()
        if isinstance(error, BlockingIOError):
            rule = f"another process is working in {folder}"
            raise RunError(rule) from error
        raise
    return file
