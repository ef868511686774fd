"""Queries a SavedModel with TensorFlow alone; compares it with its network."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from pipelines.profile import check_profile, parse_profile
from pipelines.running_step import run_step
from pipelines.steps.trainer import find_candidate, find_model
from tfcomp.analysis.jacobians import compute_stage_metrics
from tfcomp.config.errors import RunError
from tfcomp.datasets import Dataset
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.models.stages import make_stage_model

CANARY = Path(__file__).parent / "canary.py"
TIMEOUT = 600  # seconds
NUM_POINTS = 5
TOLERANCE = 1e-4  # of the largest answer: kernels differ between processes
Arrays = dict[str, np.ndarray]


def run(profile: str, runs_dir: str, evaluation: str) -> None:
    """Queries the SavedModel of the candidate.

    A RunError names the first wrong answer.
    """
    with run_step("infra_validator") as step:
        check_profile(parse_profile(profile))  # imports its plugins
        path = find_candidate(runs_dir, evaluation)
        loaded = load_run(path)
        requests = make_requests(loaded.dataset)
        answers = query_model(find_model(path), requests)
        compare_answers(answers, make_answers(loaded, requests))
        step.note = f"{len(answers)} answers equal the network's"


def make_requests(dataset: Dataset) -> Arrays:
    """Makes tables of factors: one point, and several, ID and OOD."""
    splits = dataset.splits
    known = splits.grid[splits.is_id]
    requests = {"one": known[:1], "id": _pick(known)}
    if splits.is_ood.any():
        requests["ood"] = _pick(splits.grid[splits.is_ood])
    return requests


def query_model(version: Path, requests: Arrays) -> Arrays:
    """Queries a SavedModel in a process of its own; a RunError if it fails."""
    with tempfile.TemporaryDirectory(prefix="canary-") as folder:
        names = ("requests.npz", "answers.npz")
        asked, answers = (os.path.join(folder, name) for name in names)
        np.savez(asked, **requests)  # type: ignore[arg-type]
        command = [
            sys.executable,
            "-I",
            str(CANARY),
            str(version),
            asked,
            answers,
        ]
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


def _pick(points: np.ndarray) -> np.ndarray:
    rows = np.linspace(0, len(points) - 1, min(NUM_POINTS, len(points)))
    return points[rows.astype(int)]
