"""pusher: puts a SavedModel where models are served from."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.storage.model_versions import is_copy
from tfcomp.storage.model_versions import list_versions

EVIDENCE = Path("assets.extra") / "evaluation.json"
PARTIAL = ".pushing"


@dataclass(frozen=True)
class Push:
    """What pushing came to.

    Attributes:
        version: Folder of the version that has the model.
        is_new: Whether it was made now, or had the model before.
    """

    version: Path
    is_new: bool


def push_model(model: Path, folder: Path, evaluation: Path) -> Push:
    """Copies a SavedModel to the next version, unless the last one is it.

    A version appears under its number when it is complete. It carries the
    evaluation that it was blessed by.

    Args:
        model: Folder of the SavedModel.
        folder: Parent of the versions.
        evaluation: The file of the evaluator.

    Raises:
        RunError: If the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder):
            return _push(model, folder, evaluation)
    except OSError as error:
        raise RunError(f"--export_dir must be writable: {error}") from error


def _push(model: Path, folder: Path, evaluation: Path) -> Push:
    versions = list_versions(folder)
    if versions and is_copy(versions[-1], model):
        return Push(versions[-1], False)
    partial = folder / PARTIAL  # on the same file system
    shutil.rmtree(partial, ignore_errors=True)  # of a push that was killed
    shutil.copytree(model, partial)
    shutil.copyfile(evaluation, partial / EVIDENCE)
    number = int(versions[-1].name) + 1 if versions else 1
    os.rename(partial, folder / str(number))
    return Push(folder / str(number), True)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    # Two pipelines that push at once take turns.
    with open(folder / ".lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
