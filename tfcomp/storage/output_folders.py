"""Checks folders before they are written to, and locks them."""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.settings import CONTROLS, NO_CONTROLS

MAX_NAME_BYTES = 255  # of one part of a path, in the usual file systems
LOCK_FILE = ".lock"


def check_run_folders(settings: Mapping[str, Any]) -> None:
    """Checks, from the parsed flags, both folders of a run or a sweep."""
    for flag in ("log_dir", "export_dir"):
        check_folder(flag, os.path.join(settings[flag], settings["run_name"]))


def check_folder(flag: str, path: str) -> None:
    """Checks that a folder can be written or made.

    Raises:
        ConfigError: It cannot; the error names the flag.
    """
    if not path:
        raise ConfigError(flag, "must name a folder", path)
    if CONTROLS.search(path):
        raise ConfigError(flag, NO_CONTROLS, path)
    absolute = Path(path).absolute()
    if max(len(os.fsencode(p)) for p in absolute.parts) > MAX_NAME_BYTES:
        rule = f"must have names of at most {MAX_NAME_BYTES} bytes"
        raise ConfigError(flag, rule, path)
    nearest = next(filter(os.path.lexists, [absolute, *absolute.parents]))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(flag, "must name a folder that can be written", path)


def is_locked(folder: Path) -> bool:
    """Checks whether a process has locked a folder."""
    try:
        with open(folder / LOCK_FILE, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def lock_folder(folder: Path, *, wait: bool = False) -> IO[bytes]:
    """Locks a folder until the returned file is closed or the process ends.

    Args:
        wait: Wait for a process that has locked the folder.

    Raises:
        RunError: Another process has locked it, unless `wait`.
    """
    # It stays: removing it would let two processes lock two files of this name.
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = open(os.open(folder / LOCK_FILE, how, 0o666), "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException as error:
        file.close()
        if isinstance(error, BlockingIOError):
            rule = f"another process is working in {folder}"
            raise RunError(rule) from error
        raise
    return file
