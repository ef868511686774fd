"""pusher: puts a SavedModel where models are served from."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kfp import dsl

from pipelines.profile import parse_profile
from pipelines.running_step import list_files, run_step
from pipelines.steps.trainer import find_candidate, find_model
from tfcomp.config.errors import RunError
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.model_versions import add_version, is_copy, list_versions
from tfcomp.storage.run_folder import FLAGS_FILE, read_metrics, select_scores

EVIDENCE = Path("assets.extra") / "evaluation.json"
LINEAGE = Path("assets.extra") / "lineage.json"


def execute(
    profile: str,
    examples: dsl.Dataset,
    runs: dsl.Artifact,
    evaluation: dsl.Artifact,
    export_dir: str,
    pushed: dsl.Model,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("pusher") as step:
        evidence = Path(evaluation.path)
        run = find_candidate(Path(runs.path), evidence)
        model = find_model(run)
        parsed = parse_profile(profile)
        folder = Path(export_dir, parsed.rules.push_as)
        lineage = {  # so that it can be made again
            "profile": parsed.name,
            "code": parsed.code,
            "data": examples.metadata.get("digest", ""),
            "flags": (run / FLAGS_FILE).read_text("utf-8").splitlines(),
            "metrics": select_scores(read_metrics(run)),
        }
        version, is_new = push_model(model, folder, evidence, lineage)
        pushed.uri = str(version)
        pushed.metadata["version"] = version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"


def push_model(
    model: Path, folder: Path, evaluation: Path, lineage: Mapping[str, Any]
) -> tuple[Path, bool]:
    """Copies a SavedModel to the next version, unless the last one is it.

    A version appears when it is complete, with the evaluation and the lineage:
    what the model was made from, and the version before it (`parents`). Returns
    that which has the model, and whether it is new. RunError if there is no
    model, or it cannot be written.
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
