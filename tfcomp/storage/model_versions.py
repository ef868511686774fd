"""The versions of a SavedModel in TensorFlow Serving's layout.

`<folder>/<number>/` is a version; it appears when it is complete. While it is
written it is `.partial-<random>`, which TensorFlow Serving ignores.
"""

import filecmp
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from tfcomp.storage.files import PARTIAL, make_folder
from tfcomp.storage.output_folders import lock_folder


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
    """Writes the next version, unless the last one is the same model.

    Processes take turns. Files of a killed process are removed by the next.

    Returns:
        The version that has the model, and whether it is new.

    Raises:
        OSError: The folder cannot be written.
    """
    make_folder(folder)
    with lock_folder(folder, wait=True):
        for left in folder.glob(f"{PARTIAL}*"):
            shutil.rmtree(left)  # of a process that was killed
        versions = list_versions(folder)
        if versions and is_same(versions[-1]):
            return versions[-1], False
        number = int(versions[-1].name) + 1 if versions else 1
        partial = folder / f"{PARTIAL}{secrets.token_hex(8)}"
        try:
            write(partial)
            _flush(partial)
            os.rename(partial, folder / str(number))
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return folder / str(number), True


def is_copy(version: Path, model: Path) -> bool:
    """Checks whether a version has all files of a model, byte for byte."""
    files = [path for path in model.rglob("*") if path.is_file()]
    return bool(files) and all(
        copy.is_file() and filecmp.cmp(path, copy, shallow=False)
        for path in files
        for copy in [version / path.relative_to(model)]
    )


def _flush(folder: Path) -> None:
    # A rename can reach the disk before the files that it makes visible.
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
