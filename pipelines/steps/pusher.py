"""pusher: puts a SavedModel where models are served from."""

from __future__ import annotations

import shutil
from pathlib import Path

from kfp import dsl

from pipelines.profile import parse_profile
from pipelines.running_step import run_step
from pipelines.steps.candidates import find_candidate, find_model
from tfcomp.config.errors import RunError
from tfcomp.storage.model_versions import add_version, is_copy

EVIDENCE = Path("assets.extra") / "evaluation.json"


def execute(
    profile: str,
    runs: dsl.Artifact,
    evaluation: dsl.Artifact,
    export_dir: str,
    pushed: dsl.Model,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("pusher") as step:
        evidence = Path(evaluation.path)
        model = find_model(find_candidate(Path(runs.path), evidence))
        folder = Path(export_dir, parse_profile(profile).rules.push_as)
        version, is_new = push_model(model, folder, evidence)
        pushed.uri = str(version)
        pushed.metadata["version"] = version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"


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
