"""The work of the steps: each prints how it ends, and places its outputs.

Means over seeds decide whether a candidate may be pushed. The ID error alone
chooses the candidate: a choice by an OOD score would use the held-out
combinations to select the model, which makes its OOD scores invalid.
"""

from __future__ import annotations

import contextlib
import filecmp
import glob
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.profile import MODELS, Profile, find_sweep, make_works
from tfcomp.config.errors import RunError, explain_failure, first_line
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    name_examples,
    render_splits,
)
from tfcomp.storage.files import (
    add_version,
    list_versions,
    make_folder,
    read_json,
    write_text,
)
from tfcomp.sweeps.grid import list_scores, read_result
from tfcomp.sweeps.pool import SchedulerOptions
from tfcomp.sweeps.sweep_run import Sweep, format_seconds, run_missing
from tfcomp.tables.read import print_left_out

if TYPE_CHECKING:
    from kfp import dsl
    from pandas import DataFrame

    from reproduction.claims import Row
    from tfcomp.models.loading import LoadedRun

PIXEL_TOLERANCE = 1e-5  # of an example: processors round differently
CHOOSE_BY = "id_relative_mse"
SLACK = 0.1  # how much worse than the last model, relatively
# The evaluation in a version of a pushed model.
EVALUATION = Path("assets.extra") / "evaluation.json"
PROGRAM = Path(__file__).with_name("query.py")
NUM_POINTS = 10
# Of the brightest pixel of a model: kernels differ between processes.
IMAGE_TOLERANCE = 1e-4


@dataclass
class Step:
    """What is printed of a step at its end: one word and one line."""

    state: str = "done"
    note: str = ""


@contextlib.contextmanager
def run_step(name: str) -> Iterator[Step]:
    """Prints a line when the block ends: its result, or why it failed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    start = time.monotonic()
    step = Step()
    try:
        yield step
    except BaseException as error:
        step.state = "failed"
        step.note = first_line(error)
        explained = explain_failure(error)
        if explained:
            step.note = explained[0]
        raise
    finally:
        seconds = format_seconds(time.monotonic() - start)
        line = f"{step.state:8}{name:17}  {step.note}  ({seconds})"
        print(line, flush=True)


def place(artifact: dsl.Artifact, work_dir: str, name: str) -> Path:
    """Moves an output to `<work_dir>/<name>`, where the next run continues."""
    if work_dir:
        artifact.uri = os.path.join(work_dir, name)
    path = Path(artifact.path)
    make_folder(path.parent)
    return path


def generate(profile: str, work_dir: str, examples: dsl.Dataset) -> None:
    """Writes the dataset of every sweep."""
    with start_tensorflow():
        import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    with run_step("example_gen") as step:
        folder = place(examples, work_dir, "examples")
        configs = list_datasets(Profile.from_json(profile))
        for config in configs:
            materialize(config, folder)
        step.note = f"datasets: {len(configs)}, in {folder}"


def list_datasets(profile: Profile) -> list[RunConfig]:
    """Lists one run for each dataset that the sweeps train on."""
    configs: dict[str, RunConfig] = {}
    for work in make_works(profile):
        if isinstance(work, Sweep):
            for trial in work.items:
                configs.setdefault(name_examples(trial.config), trial.config)
    return list(configs.values())


def validate_examples(profile: str, examples_dir: str, anomalies: str) -> None:
    """Writes all anomalies to a JSON file; a RunError names the first."""
    with run_step("example_validator") as step:
        configs = list_datasets(Profile.from_json(profile))
        lines = []
        for config in configs:
            name = name_examples(config)
            for anomaly in find_anomalies(config, examples_dir):
                lines.append(f"{name}: {anomaly}")
        text = json.dumps({"anomalies": lines}, indent=2)
        write_text(Path(anomalies), f"{text}\n")

        if lines:
            raise RunError(f"{lines[0]}; anomalies: {len(lines)}")
        step.note = f"no anomalies, datasets: {len(configs)}"


def find_anomalies(
    config: RunConfig, examples_dir: str | Path
) -> Iterator[str]:
    """Yields what is wrong with the dataset of a run on disk."""
    dataset = make_dataset(config)
    for name, expected in render_splits(dataset).items():
        try:
            split = load_split(config, examples_dir, name, dataset)
        except RunError as error:
            yield str(error)
        else:
            yield from compare_split(name, split, expected)


def compare_split(
    name: str, split: Examples, expected: Examples
) -> Iterator[str]:
    """Yields a line if factors, or else images, are not the expected ones."""
    for part, tolerance in {"factors": 0.0, "images": PIXEL_TOLERANCE}.items():
        written = getattr(split, part)
        wanted = getattr(expected, part)
        if written.shape != wanted.shape:
            shapes = f"{list(written.shape)} in place of {list(wanted.shape)}"
            yield f"{part} of {name}: shape {shapes}"
            return
        is_close = np.isclose(
            written,
            wanted,
            rtol=0,
            atol=tolerance,
            equal_nan=True,
        )
        numbers = is_close.reshape(len(is_close), -1)
        wrong = np.flatnonzero(~numbers.all(axis=1))
        if wrong.size:
            first = f"{wrong.size} are wrong, the first is {wrong[0]}"
            yield f"{part} of {name}: {first}"
            return


def train(
    profile: str,
    examples_dir: str,
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Artifact,
) -> None:
    """Runs trials and searches that are not finished."""
    with run_step("trainer") as step:
        folder = place(runs, work_dir, "runs")
        works = make_works(Profile.from_json(profile), folder, examples_dir)
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        failures = []
        for work in works:
            print(f"{work.kind} {work.folder.name}", flush=True)
            for line in run_missing(work, options):
                failures.append(f"{work.folder.name} {line}")
        for failure in failures:
            print(f"failed: {failure}")
        number = sum(len(work.items) for work in works)
        step.note = f"trials: {number}, failed: {len(failures)}, in {folder}"


def report(
    profile: str,
    runs_dir: str,
    work_dir: str,
    folder: dsl.Artifact,
    page: str,
) -> None:
    """Writes the report to a folder, and its page once more."""
    with run_step("report") as step:
        output = place(folder, work_dir, "report")
        rows = report_runs(Profile.from_json(profile), runs_dir, output)
        shutil.copyfile(output / "report.html", page)
        counts = Counter(row.holds for row in rows)
        answers = []
        for answer, count in counts.items():
            answers.append(f"{count} {answer}")
        listed = ", ".join(answers)
        step.note = f"claims hold: {listed}: {output / 'report.html'}"


def report_runs(
    profile: Profile,
    runs_dir: str | Path,
    output: Path,
) -> list[Row]:
    """Judges the paper's claims by the runs of a profile, and by no others.

    A folder of runs can also have trials of other flags or of other code. Runs
    of all seeds are judged, not those that claims name.
    """
    import pandas as pd

    from reproduction.claims import Evidence, read_evidence, write_report

    folders: list[Path] = []
    for work in make_works(profile, runs_dir):
        if isinstance(work, Sweep):
            folders += [trial.path for trial in work.items]
        else:
            folders.append(work.folder)
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]

    evidence = Evidence()
    if patterns:
        evidence = read_evidence(patterns, any_seed=True)
    rows = write_report(evidence, output)
    table = pd.read_csv(output / "claims.csv")
    table.to_html(output / "report.html", index=False, na_rep="")
    return rows


@dataclass(frozen=True)
class Bound:
    """What a score must be.

    Attributes:
        score: Its name, as in `trials.csv`.
        side: `max` or `min`.
        limit: The bound, which itself is accepted.
        why: Where the limit comes from, if not from the profile.
    """

    score: str
    side: str
    limit: float
    why: str = ""

    def accepts(self, value: float) -> bool:
        """Compares a value with the bound. NaN, a missing one, never passes."""
        if self.side == "max":
            return value <= self.limit
        return value >= self.limit

    def describe(self, value: float) -> str:
        """Formats a comparison, as `id_mse 0.2 is not at most 0.1`."""
        verb = "is not"
        if self.accepts(value):
            verb = "is"
        side = "at least"
        if self.side == "max":
            side = "at most"
        limit = f"{side} {self.limit:.4g}{self.why}"
        return f"{self.score} {value:.4g} {verb} {limit}"


def evaluate(
    profile: str,
    runs_dir: str,
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Artifact,
    metrics: dsl.Metrics,
) -> bool:
    """Writes the evaluation; returns True if the candidate may be pushed."""
    with run_step("evaluator") as step:
        parsed = Profile.from_json(profile)
        content = evaluate_candidate(parsed, runs_dir, export_dir)
        file = place(evaluation, work_dir, "evaluation.json")
        text = json.dumps(content, indent=2)
        write_text(file, f"{text}\n")
        for score, *_ in parsed.bounds:
            if score in content["scores"]:
                metrics.log_metric(score, content["scores"][score])

        is_blessed: bool = content["blessed"]
        if not is_blessed:
            step.state = "stopped"
        step.note = content["verdict"]
        return is_blessed


def evaluate_candidate(
    profile: Profile,
    runs_dir: str | Path,
    export_dir: str | Path,
) -> dict[str, Any]:
    """Compares the candidate with the thresholds and the last pushed model.

    Args:
        profile: The profile, with the sweep and the thresholds.
        runs_dir: The output of the trainer.
        export_dir: The folder that models are pushed to.

    Returns:
        The content of `evaluation.json`: whether the candidate is `blessed`,
        a `verdict` in words, its `run` as a path below `runs_dir`, the
        `scores` of its setting, which are means over seeds, and all `checks`.
    """
    sweep = find_sweep(make_works(profile, runs_dir), profile)
    try:
        trials = choose_setting(sweep)
    except RunError as error:
        verdict = f"not blessed: {error}"
        return {"blessed": False, "verdict": verdict, "scores": {}}

    bounds = [Bound(*bound) for bound in profile.bounds]
    versions = list_versions(Path(export_dir, profile.push_as))
    if versions:
        bounds += compare_with_pushed(bounds, versions[-1])

    means = trials.mean(skipna=False).dropna().to_dict()
    checks = []
    failed = []
    for bound in bounds:
        value = means.get(bound.score, math.nan)
        checks.append(bound.describe(value))
        if not bound.accepts(value):
            failed.append(checks[-1])

    candidate = Path(str(trials[CHOOSE_BY].idxmin()))
    verdict = f"blessed {candidate.name}: {', '.join(checks)}"
    if failed:
        verdict = f"not blessed: {', '.join(failed)}"
    return {
        "blessed": not failed,
        "verdict": verdict,
        "run": str(candidate.relative_to(runs_dir)),
        "scores": means,
        "checks": checks,
    }


def choose_setting(sweep: Sweep) -> DataFrame:
    """Chooses the setting with the lowest mean ID error.

    Returns:
        Its scores, a row for each trial, with the folder of the trial as index.

    Raises:
        RunError: If no setting has finished with all of its seeds.
    """
    import pandas as pd

    settings = []
    by_setting = itertools.groupby(sweep.items, key=lambda trial: trial.setting)
    for _, group in by_setting:
        trials = list(group)
        rows = []
        for trial in trials:
            run, reasons = read_result(trial)
            print_left_out(reasons)
            rows.append(list_scores(run))
        paths = [str(trial.path) for trial in trials]
        scores = pd.DataFrame(rows, index=paths)
        if CHOOSE_BY in scores and scores[CHOOSE_BY].notna().all():
            settings.append(scores)

    if not settings:
        name = sweep.folder.name
        raise RunError(f"no setting of {name} has finished with all its seeds")
    return min(settings, key=lambda scores: scores[CHOOSE_BY].mean())


def compare_with_pushed(bounds: Sequence[Bound], version: Path) -> list[Bound]:
    """Lists the same bounds with limits from the scores of a pushed model."""
    file = version / EVALUATION
    if not file.exists():  # a model that was copied there by hand
        return []

    scores = read_json(file).get("scores", {})
    others = []
    for bound in bounds:
        if bound.score in scores:
            last = scores[bound.score]
            slack = SLACK * abs(last)
            if bound.side == "min":
                slack = -slack
            why = f" (version {version.name} has {last:.4g})"
            others.append(replace(bound, limit=last + slack, why=why))
    return others


def validate_model(profile: str, runs_dir: str, evaluation: str) -> None:
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
    with start_tensorflow():
        from tfcomp.models.loading import load_run
        from tfcomp.training.export import export_scored

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
    if not error <= IMAGE_TOLERANCE * np.abs(expected).max():
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
        folder = Path(export_dir, name)
        version, is_new = push_model(model, folder, Path(evaluation))
        pushed.uri = str(version)
        pushed.metadata["version"] = version.name
        word = "nothing new, the model is"
        if is_new:
            word = "pushed"
        step.note = f"{word} {version}"


def push_model(
    model: Path, folder: Path, evaluation: Path
) -> tuple[Path, bool]:
    """Copies a SavedModel; returns its version, and True if that is new."""

    def write(partial: Path) -> None:
        shutil.copytree(model, partial, dirs_exist_ok=True)
        shutil.copyfile(evaluation, partial / EVALUATION)

    def is_same(version: Path) -> bool:
        files = []
        for path in model.rglob("*"):
            if path.is_file():
                files.append(path.relative_to(model))
        same, _, _ = filecmp.cmpfiles(version, model, files, shallow=False)
        return bool(files) and len(same) == len(files)

    return add_version(folder, write, is_same)
