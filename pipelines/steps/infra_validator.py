"""infra_validator: is the SavedModel fit to be served?

Asked with TensorFlow alone (`canary.py`), it must answer as the network does.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from kfp import dsl

from pipelines.profile import check_profile, parse_profile
from pipelines.running_step import run_step
from pipelines.steps.trainer import find_candidate, find_model
from tfcomp.analysis import compute_stage_metrics
from tfcomp.config.errors import RunError
from tfcomp.datasets import Dataset
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.models.stages import make_stage_model
from tfcomp.sweeps.guarded_process import make_guarded

CANARY = Path(__file__).parent / "canary.py"
ERROR = re.compile(r"[\w.]+(Error|Exception): ")
TIMEOUT = 600  # seconds
NUM_POINTS = 5
# Of the largest answer of an output: kernels may differ between processes.
TOLERANCE = 1e-4
Arrays = dict[str, np.ndarray]


def execute(
    profile: str,
    runs: dsl.Artifact,
    evaluation: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("infra_validator") as step:
        check_profile(parse_profile(profile))  # imports its plugins
        run = find_candidate(Path(runs.path), Path(evaluation.path))
        model, loaded = find_model(run), load_run(run)
        requests = make_requests(loaded.dataset)
        answers = ask_model(model, requests)
        compare_answers(answers, make_answers(loaded, requests))
        step.log(metrics, {"answers": len(answers)})
        step.note = f"{len(answers)} answers are those of the network"


def make_requests(dataset: Dataset) -> Arrays:
    """Factor tables to ask for: one point, and several, ID and OOD."""
    splits = dataset.splits
    known = splits.grid[splits.is_id]
    requests = {"one": known[:1], "id": _pick(known)}
    if splits.is_ood.any():
        requests["ood"] = _pick(splits.grid[splits.is_ood])
    return requests


def ask_model(version: Path, requests: Arrays) -> Arrays:
    """The answers, or a RunError, of a SavedModel with TensorFlow alone."""
    with tempfile.TemporaryDirectory(prefix="canary-") as folder:
        names = ("model", "requests.npz", "answers.npz")
        copy, asked, answers = (os.path.join(folder, name) for name in names)
        try:
            shutil.copytree(version, copy)
        except OSError as error:
            raise RunError(f"no SavedModel in {version}: {error}") from error
        np.savez(asked, **requests)
        command = (None, "-I", str(CANARY), copy, asked, answers)
        try:
            result = subprocess.run(
                make_guarded(command),
                capture_output=True,
                text=True,
                cwd=folder,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired as error:
            reason = f"the SavedModel did not answer in {TIMEOUT} s"
            raise RunError(reason) from error
        if result.returncode:
            lines = result.stderr.strip().splitlines() or ["no output"]
            # What TensorFlow says of a graph ends with the node where it was.
            lines = [line for line in lines if ERROR.match(line)] or lines
            print(result.stderr)  # all of it to the log
            rule = "the SavedModel cannot be used with TensorFlow alone"
            raise RunError(f"{rule}: {lines[-1]}")
        with np.load(answers) as found:
            return dict(found)


def make_answers(run: LoadedRun, requests: Arrays) -> Arrays:
    """What the trained network itself answers, named as by the canary."""
    stages = make_stage_model(run.model)
    jacobian_fn = choose_jacobian(run.model, run.dataset.space)
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
    """RunError naming the first answer that differs."""
    for name in expected:
        if name not in answers:
            raise RunError(f"the SavedModel has no answer {name}")
    for name, found in answers.items():
        if name not in expected:
            raise RunError(f"the SavedModel has an answer {name} too many")
        true = expected[name]
        if found.shape != true.shape:
            raise RunError(
                f"the SavedModel answers {name} with shape "
                f"{list(found.shape)}, the network with {list(true.shape)}"
            )
        if not np.isfinite(found).all():
            raise RunError(f"the SavedModel's answer {name} is not finite")
        error = np.abs(found - true).max(initial=0.0)
        if error > TOLERANCE * max(np.abs(true).max(initial=0.0), 1e-6):
            raise RunError(
                f"the SavedModel's answer {name} differs from the network's "
                f"by {error:.3g}"
            )


def _pick(points: np.ndarray) -> np.ndarray:
    rows = np.linspace(0, len(points) - 1, min(NUM_POINTS, len(points)))
    return points[rows.astype(int)]
