"""Steps `infra_validator` and `pusher`: queries a SavedModel, and copies it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.profile import check_profile, parse_profile
from pipelines.steps import list_files, run_step
from pipelines.steps.evaluator import LINEAGE
from pipelines.steps.training import find_candidate
from tfcomp.config.errors import RunError
from tfcomp.datasets import Dataset
from tfcomp.metrics.derivatives import choose_jacobian
from tfcomp.metrics.jacobians import compute_stage_metrics
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.models.stages import make_stage_model
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.output_folders import add_version, is_copy, list_versions
from tfcomp.storage.run_folder import FLAGS_FILE, read_metrics, select_scores

if TYPE_CHECKING:
    from kfp import dsl

EVIDENCE = Path("assets.extra") / "evaluation.json"
CANARY = Path(__file__).parent / "canary.py"
TIMEOUT = 600  # seconds that a SavedModel may take to answer
NUM_POINTS = 5
TOLERANCE = 1e-4  # of the largest answer: kernels differ between processes
Arrays = dict[str, np.ndarray]


def validate(profile: str, runs_dir: str, evaluation: str) -> None:
    """Queries the candidate's SavedModel with TensorFlow alone."""
    with run_step("infra_validator") as step:
        check_profile(parse_profile(profile))  # imports its plugins
        path, model = find_candidate(runs_dir, evaluation)
        loaded = load_run(path)
        requests = make_requests(loaded.dataset)
        answers = query_model(model, requests)
        compare_answers(answers, make_answers(loaded, requests))
        step.note = f"{len(answers)} answers equal the network's"


def make_requests(dataset: Dataset) -> Arrays:
    """Makes tables of factors: one point, and several, ID and OOD."""
    splits = dataset.splits
    known, held_out = splits.grid[splits.is_id], splits.grid[splits.is_ood]
    requests = {"one": known[:1]}
    for name, points in (("id", known), ("ood", held_out)):
        if len(points):
            rows = np.linspace(0, len(points) - 1, min(NUM_POINTS, len(points)))
            requests[name] = points[rows.astype(int)]
    return requests


def query_model(version: Path, requests: Arrays) -> Arrays:
    """Queries a SavedModel in a process of its own; a RunError if it fails."""
    with tempfile.TemporaryDirectory(prefix="canary-") as folder:
        names = ("requests.npz", "answers.npz")
        asked, answers = (os.path.join(folder, name) for name in names)
        np.savez(asked, **requests)  # type: ignore[arg-type]
        program = [sys.executable, "-I", str(CANARY)]
        command = [*program, str(version), asked, answers]
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired as error:
            reason = f"the SavedModel did not answer in {TIMEOUT} s"
            raise RunError(reason) from error
        if result.returncode:
            print(result.stderr)  # all of it to the log
            rule = "the SavedModel cannot be used with TensorFlow alone"
            last = (result.stderr.splitlines() or ["no output"])[-1]
            raise RunError(f"{rule}: {last}")
        with np.load(answers) as content:
            return dict(content)


def make_answers(run: LoadedRun, requests: Arrays) -> Arrays:
    """Computes the answers of the trained network, named as the canary's."""
    stages = make_stage_model(run.model)
    jacobian_fn = choose_jacobian(run.model, run.dataset)
    answers = {}
    for name, factors in requests.items():
        image = run.model(factors)
        answers[f"serving_default/{name}/image"] = np.asarray(image)
        for stage, value in stages(factors).items():
            answers[f"activations/{name}/{stage}"] = np.asarray(value)
        metrics = compute_stage_metrics(stages, factors, jacobian_fn)
        for stage, value in metrics.items():
            answers[f"geometry/{name}/{stage}"] = np.asarray(value)
    return answers


def compare_answers(answers: Arrays, expected: Arrays) -> None:
    """Raises a RunError that names the first answer that differs."""
    for name in expected.keys() | answers.keys():
        answer, true = answers.get(name), expected.get(name)
        if answer is None or true is None or answer.shape != true.shape:
            shapes = [None if a is None else a.shape for a in (answer, true)]
            raise RunError(
                f"the SavedModel answers {name} with shape {shapes[0]}, the "
                f"network with {shapes[1]}"
            )
        error = np.abs(answer - true).max(initial=0.0)
        # NaN is no match, either.
        if not error <= TOLERANCE * max(np.abs(true).max(initial=0.0), 1e-6):
            raise RunError(
                f"the SavedModel's answer {name} differs from the network's "
                f"by {error:.3g}"
            )


def push(
    profile: str,
    runs_dir: str,
    evaluation: str,
    export_dir: str,
    digest: str,
    pushed: dsl.Model,
) -> None:
    """Pushes the candidate with its lineage."""
    with run_step("pusher") as step:
        parsed = parse_profile(profile)
        path, model = find_candidate(runs_dir, evaluation)
        lineage = {
            "profile": parsed.name,
            "code": parsed.code,
            "data": digest,
            "flags": (path / FLAGS_FILE).read_text("utf-8").splitlines(),
            "metrics": select_scores(read_metrics(path)),
        }
        folder = Path(export_dir, parsed.rules.push_as)
        version, is_new = push_model(model, folder, Path(evaluation), lineage)
        pushed.uri, pushed.metadata["version"] = str(version), version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"


def push_model(
    model: Path, folder: Path, evaluation: Path, lineage: Mapping[str, Any]
) -> tuple[Path, bool]:
    """Copies a SavedModel; returns its version, and True if that is new."""

    def write(partial: Path) -> None:
        shutil.copytree(model, partial, dirs_exist_ok=True)
        shutil.copyfile(evaluation, partial / EVIDENCE)
        parents = [
            {"version": last.name, "sha256": hash_files(list_files(last))}
            for last in list_versions(folder)[-1:]
        ]
        text = json.dumps({**lineage, "parents": parents}, indent=1) + "\n"
        (partial / LINEAGE).write_text(text, "utf-8")

    return add_version(folder, write, lambda last: is_copy(last, model))
