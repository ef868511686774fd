"""Checks and locks folders, and adds numbered versions of a SavedModel.

`<folder>/<number>/` is a version, as TensorFlow Serving reads it. It appears
when it is complete; until then it is `.partial-<random>`.
"""

import fcntl
import filecmp
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import PARTIAL, make_folder, replace_folder

LOCK_FILE = ".lock"


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


def lock_folder(folder: Path, *, wait: bool = False) -> IO[bytes]:
    """Locks a folder until the returned file is closed or the process ends."""
    # It stays: removing it would let two processes lock two files of this name.
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = open(os.open(folder / LOCK_FILE, how, 0o666), "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException as error:
        file.close()
        if not isinstance(error, BlockingIOError):
            raise
        raise RunError(f"another process is working in {folder}") from error
    return file


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
            shutil.rmtree(left)  # of a process that was killed
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
