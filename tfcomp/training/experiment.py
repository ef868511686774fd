"""One run: dataset, model, training, evaluation, export, `metrics.json`.

Trainings that miss an ID target start again with another seed. On resume,
finished attempts are replayed from checkpoints, so their number is not stored.
"""

import dataclasses
import json
import math
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tfcomp
from tfcomp.config.errors import ConfigError, DivergedError, RunError
from tfcomp.config.plugins import CALLBACKS
from tfcomp.config.process import count_cores
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import attach_examples
from tfcomp.datasets.solvable import measure_coverage
from tfcomp.metrics.point_scores import try_metrics
from tfcomp.metrics.registry import USER_METRICS, describe_user_metrics
from tfcomp.storage import files, run_folder
from tfcomp.storage.run_folder import HISTORY_FILE, METRICS_FILE, MODEL_FILE
from tfcomp.training import prepared_models
from tfcomp.training.callbacks import list_axes, list_epochs
from tfcomp.training.export import export_scored
from tfcomp.training.fit import fit_model
from tfcomp.training.monitor import Monitor
from tfcomp.training.summaries import RunSummaries


def train_and_evaluate(
    config: RunConfig, dataset: Dataset | None = None
) -> dict[str, Any]:
    """Runs one experiment, as far as it is not finished yet.

    Args:
        config: The run; its folder has what was trained before.
        dataset: Its dataset, if it is made already.

    Returns:
        The content of `metrics.json`.

    Raises:
        ConfigError: A flag does not fit the dataset or this machine.
        DivergedError: The loss of training is not finite.
        RunError: The run's folder, or a part of a user, cannot be used.
    """
    # First: TensorFlow divides a CPU before it computes anything.
    strategy = prepared_models.make_strategy(config.training.num_replicas)
    dataset = dataset or make_dataset(config)
    dataset.prepare()
    if config.data.examples_dir:
        dataset = attach_examples(config, dataset)
    try_metrics(dataset)
    if not prepared_models.is_shipped(config):
        prepared_models.check_saving(config, dataset)
    header = textwrap.indent(describe_environment(), "# ")
    with run_folder.claim_run(config, header):
        folder = Path(config.run_dir)
        if run_folder.is_finished(folder):
            return run_folder.read_metrics(folder)
        return _run(config, dataset, strategy)


def _run(
    config: RunConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> dict[str, Any]:
    folder = Path(config.run_dir)
    for left in filter(Path.is_file, folder.rglob(f"{files.PARTIAL}*")):
        left.unlink()  # of a process that was killed
    with prepared_models.prepare_models(config, dataset, strategy) as models:
        model, observed = models.trained, models.observed
        summaries = RunSummaries(config, dataset)
        summaries.write_settings()
        monitor = Monitor(config, models, dataset, summaries)
        user_callbacks = make_callbacks(config)
        callbacks = [monitor, *user_callbacks]
        untrained = monitor.score_errors(model)

        target = config.training.id_target
        if not target:
            checkpoints = folder / "checkpoints"
            cost = fit_model(
                model, dataset, config, str(checkpoints), callbacks
            )
        elif untrained["id"] is None:
            rule = "must be 0: no ID image differs from the reference"
            raise ConfigError("id_target", rule, target)
        else:
            cost = train_to_target(config, dataset, models, monitor, callbacks)
        cost["weights"] = model.count_params()

        metrics = {**monitor.finish(model), "train": cost}
        metrics["untrained"] = cost.pop("untrained", untrained)
        metrics["coverage"] = measure_coverage(dataset)
        subsets = dataset.subsets.items()
        metrics["points"] = {name: int(rows.sum()) for name, rows in subsets}
        if copies := dataset.copies.summary:
            metrics["copies"] = copies
        if own := describe_user_metrics():
            metrics[USER_METRICS] = own
        summaries.close()

        with files.write_whole(folder / MODEL_FILE) as partial:
            observed.save(partial)
        if config.export:
            steps = metrics.get("differences", [])
            export_scored(observed, config, dataset, metrics, steps=steps)
    text = json.dumps(metrics, indent=2, allow_nan=False)
    for callback in user_callbacks:
        if end := getattr(callback, "on_run_end", None):
            end(metrics)
    files.write_text(folder / METRICS_FILE, f"{text}\n")
    return metrics


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One training of a run that starts again until its ID target is met."""

    seed: int
    # Epochs, seconds and scores before training; None if training diverged.
    cost: dict[str, Any] | None = None
    id_error: float | None = None  # relative MSE
    is_decided: bool = False  # all axes of hard rendering are chosen
    problem: DivergedError | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts attempts: those with decided axes first, by their ID error."""
        error = math.inf if self.id_error is None else self.id_error
        return not self.is_decided, error

    def describe(self) -> str:
        """Says how the attempt ended, for a note."""
        if self.id_error is None:
            return "training diverged"
        axes = "" if self.is_decided else ", axes not decided"
        return f"ID relative MSE {self.id_error:.3g}{axes}"

    def to_json(self) -> dict[str, Any]:
        """Returns what `metrics.json` says about the attempt."""
        return {
            "seed": self.seed,
            "id_relative_mse": self.id_error,
            "decided": self.is_decided,
        }


def train_to_target(
    config: RunConfig,
    dataset: Dataset,
    models: prepared_models.PreparedModels,
    monitor: Monitor,
    callbacks: Sequence[keras.callbacks.Callback],
) -> dict[str, Any]:
    """Trains until the ID target is met; ends with the best attempt.

    Args:
        config: Has the target and the number of restarts.
        dataset: The dataset of the run.
        models: The models, which have the weights of the best attempt then.
        monitor: Scores the attempts.
        callbacks: Callbacks of `fit`, the monitor included.

    Returns:
        The cost of the best attempt, with its seed, the seconds of all
        attempts, and what became of each.

    Raises:
        DivergedError: All attempts diverged.
    """
    restarts = config.training.restarts
    goal = (False, config.training.id_target)

    attempts: list[Attempt] = []
    for number in range(restarts + 1):
        attempt = train_attempt(
            number, config, dataset, models, monitor, callbacks
        )
        attempts.append(attempt)
        if attempt.rank <= goal:
            break
        if number < restarts:
            again = f"restart {number + 1} of at most {restarts}"
            print(f"note: {attempt.describe()}: {again}", file=sys.stderr)

    costs = [a.cost for a in attempts if a.cost is not None]
    if attempt.problem and not costs:
        raise attempt.problem

    best = min(range(len(attempts)), key=lambda n: attempts[n].rank)
    if best != number:  # its checkpoint has its weights
        attempt = train_attempt(
            best, config, dataset, models, monitor, callbacks
        )
    return {
        **(attempt.cost or {}),
        "seconds": sum(cost["seconds"] for cost in costs),
        "seed": attempt.seed,
        "attempts": [a.to_json() for a in attempts],
    }


def train_attempt(
    number: int,
    config: RunConfig,
    dataset: Dataset,
    models: prepared_models.PreparedModels,
    monitor: Monitor,
    callbacks: Sequence[keras.callbacks.Callback],
) -> Attempt:
    """Trains an attempt from its checkpoint, which may be its end already."""
    run = Path(config.run_dir)
    folder = run / "checkpoints"
    if number:
        folder = folder / f"restart_{number}"
    seed = derive_seed(config.training.seed, number)
    training = dataclasses.replace(config.training, seed=seed)
    config = dataclasses.replace(config, training=training)

    models.restart(config, dataset)
    is_resumed = bool(list_epochs(folder))
    # A new attempt has no numbers of the one before.
    monitor.history.copy(run if is_resumed else folder)
    untrained = monitor.score_errors(models.trained)

    record = folder / "diverged.txt"
    try:
        if record.exists():
            raise DivergedError(files.read_text(record))
        cost = fit_model(
            models.trained, dataset, config, str(folder), callbacks
        )
    except DivergedError as error:
        files.make_folder(folder)
        files.write_text(record, str(error))
        return Attempt(seed, problem=error)

    curves = folder / HISTORY_FILE
    if not curves.exists():  # the next attempt overwrites those of the run
        files.write_text(curves, files.read_text(run / HISTORY_FILE))
    monitor.history.copy(folder)
    axes = [layer.find_axis() for layer in list_axes(models.trained)]
    return Attempt(
        seed,
        cost={**cost, "untrained": untrained},
        id_error=monitor.score_errors(models.trained)["id"],
        is_decided=None not in axes,
    )


def derive_seed(seed: int, number: int) -> int:
    """Returns the seed of the initial weights and batches of an attempt."""
    if not number:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1)


def describe_environment() -> str:
    """Lists versions and settings that can change the last bits."""
    devices = [d.device_type for d in tf.config.list_physical_devices()]
    facts = {
        "tfcomp": tfcomp.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": np.__version__,
        "devices": ", ".join(devices),
        "cores": count_cores(),
        "threads": os.environ.get("TF_NUM_INTRAOP_THREADS", "default"),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
    }
    return "".join(f"{name}: {fact}\n" for name, fact in facts.items())


def make_callbacks(config: RunConfig) -> list[keras.callbacks.Callback]:
    """Makes the registered callbacks, in the order of their names."""
    callbacks = []
    for name in CALLBACKS.names():
        make_callback = CALLBACKS.get(name).load()
        callback = make_callback(config)
        if not isinstance(callback, keras.callbacks.Callback):
            raise RunError(
                f"--plugins: the callback {name!r} must be a Keras callback, "
                f"it is a {type(callback).__name__}"
            )
        callbacks.append(callback)
    return callbacks
