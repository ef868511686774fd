"""pusher: puts a SavedModel where models are served from."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.storage.model_versions import add_version
from tfcomp.storage.model_versions import is_copy

EVIDENCE = Path("assets.extra") / "evaluation.json"


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

    def write(partial: Path) -> None:
        shutil.copytree(model, partial)
        shutil.copyfile(evaluation, partial / EVIDENCE)

    try:
        version, is_new = add_version(
            folder, write, lambda last: is_copy(last, model)
        )
    except OSError as error:
        raise RunError(f"--export_dir must be writable: {error}") from error
    return Push(version, is_new)
