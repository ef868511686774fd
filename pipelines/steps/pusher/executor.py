"""pusher: puts a SavedModel where models are served from."""

from __future__ import annotations

import shutil
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.storage.model_versions import add_version, is_copy

EVIDENCE = Path("assets.extra") / "evaluation.json"


def push_model(
    model: Path, folder: Path, evaluation: Path
) -> tuple[Path, bool]:
    """Copies a SavedModel to the next version, unless the last one is it.

    A version appears under its number in the folder when it is complete. It
    contains the file of the evaluation by which it was blessed.

    Returns:
        The folder of the version that has the model, and whether it is new.

    Raises:
        RunError: If there is no model, or the folder cannot be written.
    """
    if not any(model.glob("**/*")):
        raise RunError(f"there is no SavedModel in {model}")

    def write(partial: Path) -> None:
        shutil.copytree(model, partial)
        shutil.copyfile(evaluation, partial / EVIDENCE)

    try:
        return add_version(folder, write, lambda last: is_copy(last, model))
    except OSError as error:
        raise RunError(f"--export_dir must be writable: {error}") from error
