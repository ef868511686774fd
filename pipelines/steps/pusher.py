"""Puts a SavedModel where models are served from."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.profile import parse_profile
from pipelines.running_step import list_files
from pipelines.steps.trainer import find_candidate, find_model
from tfcomp.config.errors import RunError
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.model_versions import add_version, is_copy, list_versions
from tfcomp.storage.run_folder import FLAGS_FILE, read_metrics, select_scores

EVIDENCE = Path("assets.extra") / "evaluation.json"
LINEAGE = Path("assets.extra") / "lineage.json"


def push_candidate(
    profile: str, runs_dir: Path, evaluation: Path, export_dir: str, digest: str
) -> tuple[Path, bool]:
    """Pushes the candidate with its lineage; returns as `push_model`."""
    run = find_candidate(runs_dir, evaluation)
    parsed = parse_profile(profile)
    lineage = {
        "profile": parsed.name,
        "code": parsed.code,
        "data": digest,
        "flags": (run / FLAGS_FILE).read_text("utf-8").splitlines(),
        "metrics": select_scores(read_metrics(run)),
    }
    folder = Path(export_dir, parsed.rules.push_as)
    return push_model(find_model(run), folder, evaluation, lineage)


def push_model(
    model: Path, folder: Path, evaluation: Path, lineage: Mapping[str, Any]
) -> tuple[Path, bool]:
    """Copies a SavedModel to the next version, unless it is the last one.

    A version appears when it is complete, with the evaluation and the lineage,
    which names the version before it (`parents`).

    Returns:
        The version that has the model, and whether it is new.

    Raises:
        RunError: There is no model, or it cannot be written.
    """
    if not any(model.glob("**/*")):
        raise RunError(f"there is no SavedModel in {model}")

    def write(partial: Path) -> None:
        shutil.copytree(model, partial)
        shutil.copyfile(evaluation, partial / EVIDENCE)
        parents = [
            {"version": last.name, "sha256": hash_files(list_files(last))}
            for last in list_versions(folder)[-1:]
        ]
        text = json.dumps({**lineage, "parents": parents}, indent=1) + "\n"
        (partial / LINEAGE).write_text(text, "utf-8")

    try:
        return add_version(folder, write, lambda last: is_copy(last, model))
    except OSError as error:
        raise RunError(f"--export_dir must be writable: {error}") from error
