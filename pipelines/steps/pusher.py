"""Puts a SavedModel where models are served from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.profile import parse_profile
from pipelines.running_step import list_files, run_step
from pipelines.steps.trainer import find_candidate, find_model
from tfcomp.config.errors import RunError
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.output_folders import add_version, is_copy, list_versions
from tfcomp.storage.run_folder import FLAGS_FILE, read_metrics, select_scores

if TYPE_CHECKING:
    from kfp import dsl

EVIDENCE = Path("assets.extra") / "evaluation.json"
LINEAGE = Path("assets.extra") / "lineage.json"


def run(
    profile: str,
    runs_dir: str,
    evaluation: str,
    export_dir: str,
    digest: str,
    pushed: dsl.Model,
) -> None:
    """Pushes the candidate with its lineage."""
    with run_step("pusher") as step:
        path, parsed = (
            find_candidate(runs_dir, evaluation),
            parse_profile(profile),
        )
        lineage = {
            "profile": parsed.name,
            "code": parsed.code,
            "data": digest,
            "flags": (path / FLAGS_FILE).read_text("utf-8").splitlines(),
            "metrics": select_scores(read_metrics(path)),
        }
        folder = Path(export_dir, parsed.rules.push_as)
        version, is_new = push_model(
            find_model(path), folder, Path(evaluation), lineage
        )
        pushed.uri, pushed.metadata["version"] = str(version), version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"


def push_model(
    model: Path, folder: Path, evaluation: Path, lineage: Mapping[str, Any]
) -> tuple[Path, bool]:
    """Copies a SavedModel to the next version, unless it is the last one.

    A version appears when it is complete, with the evaluation and the lineage,
    which names the version before it (`parents`).

    Returns:
        The version that has the model, and whether it is new.

    Raises:
        RunError: There is no model.
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

    return add_version(folder, write, lambda last: is_copy(last, model))
