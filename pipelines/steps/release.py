"""Steps `infra_validator` and `pusher`: calls a SavedModel, and copies it."""

from __future__ import annotations

import filecmp
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.profile import MODELS, Profile, make_works
from pipelines.steps import run_step
from pipelines.steps.evaluator import EVALUATION
from tfcomp.config.errors import RunError
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.storage.files import add_version, read_json
from tfcomp.training.export import export_scored

if TYPE_CHECKING:
    from kfp import dsl

PROGRAM = Path(__file__).with_name("query.py")
NUM_POINTS = 10
TOLERANCE = 1e-4  # of the brightest pixel: kernels differ between processes


def validate(profile: str, runs_dir: str, evaluation: str) -> None:
    """Compares images of the candidate's SavedModel and of its network."""
    with run_step("infra_validator") as step:
        run, model = export_candidate(profile, runs_dir, evaluation)
        grid = run.dataset.splits.grid
        rows = np.linspace(0, len(grid) - 1, NUM_POINTS).astype(int)
        factors = grid[rows]

        images = query_model(model, factors)
        compare_images(images, np.asarray(run.model(factors)))
        step.note = f"{len(images)} images equal the network's"


def export_candidate(
    profile: str, runs_dir: str, evaluation: str
) -> tuple[LoadedRun, Path]:
    """Loads the candidate; returns it with its SavedModel, made if needed."""
    make_works(Profile.from_json(profile))  # imports the plugins of the run
    path = Path(runs_dir, read_json(Path(evaluation))["run"])
    run = load_run(path)
    sweep = path.parents[1]
    model = export_scored(
        model=run.model,
        config=run.config,
        dataset=run.dataset,
        metrics=run.metrics,
        folder=Path(runs_dir, MODELS, sweep.name, path.name),
    )
    return run, model


def query_model(model: Path, factors: np.ndarray) -> np.ndarray:
    """Calls a SavedModel in a process of its own.

    Args:
        model: The folder of the SavedModel.
        factors: Points, [n, F].

    Returns:
        Images, [n, H, W, C].

    Raises:
        RunError: If it cannot be loaded or called.
    """
    result = subprocess.run(
        [sys.executable, "-I", str(PROGRAM), str(model)],
        input=json.dumps(factors.tolist()),
        capture_output=True,
        text=True,
    )
    if result.returncode:
        print(result.stderr)  # all of it to the log
        last_line = result.stderr.strip().rpartition("\n")[-1]
        rule = "the SavedModel cannot be used with TensorFlow alone"
        raise RunError(f"{rule}: {last_line}")
    return np.array(json.loads(result.stdout))


def compare_images(images: np.ndarray, expected: np.ndarray) -> None:
    """Raises a RunError if images differ from the trained network's."""
    error = math.nan
    if images.shape == expected.shape:
        error = np.abs(images - expected).max()
    # NaN is no match, either.
    if not error <= TOLERANCE * np.abs(expected).max():
        raise RunError(
            f"the SavedModel's images differ from the network's by {error:.3g}"
        )


def push(
    profile: str,
    runs_dir: str,
    evaluation: str,
    export_dir: str,
    pushed: dsl.Model,
) -> None:
    """Pushes the candidate, unless it is the version that was pushed last."""
    with run_step("pusher") as step:
        _, model = export_candidate(profile, runs_dir, evaluation)
        name = Profile.from_json(profile).push_as
        version, is_new = push_model(
            model, Path(export_dir, name), Path(evaluation)
        )
        pushed.uri = str(version)
        pushed.metadata["version"] = version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"


def push_model(
    model: Path, folder: Path, evaluation: Path
) -> tuple[Path, bool]:
    """Copies a SavedModel; returns its version, and True if that is new."""

    def write(partial: Path) -> None:
        shutil.copytree(model, partial, dirs_exist_ok=True)
        shutil.copyfile(evaluation, partial / EVALUATION)

    def is_same(version: Path) -> bool:
        files = [p.relative_to(model) for p in model.rglob("*") if p.is_file()]
        same, _, _ = filecmp.cmpfiles(version, model, files, shallow=False)
        return bool(files) and len(same) == len(files)

    return add_version(folder, write, is_same)
