"""One run: dataset, model, training, evaluation, export, `metrics.json`.

Trainings that miss an ID target start again with another seed. On resume,
finished attempts are replayed from checkpoints, so their number is not stored.
"""

import json
import math
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from tfcomp.metrics.registry import (
    USER_METRICS,
    describe_user_metrics,
    try_metrics,
)
from tfcomp.models.loading import hash_weights
from tfcomp.models.registry import is_shipped
from tfcomp.storage import files, run_folder
from tfcomp.storage.run_folder import (
    HISTORY_FILE,
    METRICS_FILE,
    MODEL_FILE,
    WEIGHTS_HASH,
)
from tfcomp.training import prepared_models
from tfcomp.training.export import export_scored
from tfcomp.training.fit import fit_model, list_epochs
from tfcomp.training.monitor import Monitor
from tfcomp.training.prepared_models import (
    PreparedModels,
    list_axis_embeddings,
)


def train_and_evaluate(
    config: RunConfig,
    dataset: Dataset | None = None,
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
    if not is_shipped(config):
        prepared_models.check_saving(config, dataset)

    environment = describe_environment()
    header = textwrap.indent(environment, "# ")
    with run_folder.claim_run(config, header):
        folder = Path(config.run_dir)
        if run_folder.is_finished(folder):
            return run_folder.read_metrics(folder)
        for path in folder.rglob(f"{files.PARTIAL}*"):
            if path.is_file():
                path.unlink()  # of a process that was killed
        return _run(config, dataset, strategy)


def _run(
    config: RunConfig,
    dataset: Dataset,
    strategy: tf.distribute.Strategy,
) -> dict[str, Any]:
    folder = Path(config.run_dir)
    with prepared_models.prepare_models(config, dataset, strategy) as models:
        monitor = Monitor(config, models, dataset)
        user_callbacks = make_callbacks(config)
        trainer = Trainer(
            config=config,
            dataset=dataset,
            models=models,
            monitor=monitor,
            callbacks=[monitor, *user_callbacks],
        )
        cost = trainer.train()
        cost["weights"] = models.trained.count_params()
        untrained = cost.pop("untrained")
        metrics = monitor.finish()
        metrics["train"] = cost
        metrics["untrained"] = untrained
        metrics |= describe_data(dataset)
        with files.write_atomically(folder / MODEL_FILE) as partial:
            models.observed.save(partial)
        metrics[WEIGHTS_HASH] = hash_weights(models.observed)
        if config.export:
            steps = metrics.get("differences", [])
            export_scored(
                models.observed,
                config,
                dataset,
                metrics,
                steps=steps,
            )

    text = json.dumps(
        metrics,
        indent=2,
        allow_nan=False,
    )
    for callback in user_callbacks:
        if hasattr(callback, "on_run_end"):
            callback.on_run_end(metrics)
    files.write_text(folder / METRICS_FILE, f"{text}\n")
    return metrics


def describe_data(dataset: Dataset) -> dict[str, Any]:
    """Returns what `metrics.json` says about the data and users' metrics."""
    points = {}
    for name, rows in dataset.subsets.items():
        points[name] = int(rows.sum())
    coverage = measure_coverage(dataset)
    facts: dict[str, Any] = {"coverage": coverage}
    facts["points"] = points
    if dataset.copies.summary:
        facts["copies"] = dataset.copies.summary
    user_metrics = describe_user_metrics()
    if user_metrics:
        facts[USER_METRICS] = user_metrics
    return facts


@dataclass(frozen=True)
class Attempt:
    """One training of a run that starts again until its ID target is met.

    Attributes:
        seed: The seed of initial weights and batches.
        cost: Epochs, seconds, and scores before training; None if training
            diverged.
        id_error: Relative MSE of ID images.
        is_decided: All axes of hard rendering are chosen.
        problem: The error of a training that diverged.
    """

    seed: int
    cost: dict[str, Any] | None = None
    id_error: float | None = None
    is_decided: bool = False
    problem: DivergedError | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts attempts: those with decided axes first, by their ID error."""
        error = self.id_error
        if error is None:
            error = math.inf
        return not self.is_decided, error

    def describe(self) -> str:
        """Says how the attempt ended, for a note."""
        if self.id_error is None:
            return "training diverged"
        text = f"ID relative MSE {self.id_error:.3g}"
        if not self.is_decided:
            text += ", axes not decided"
        return text

    def to_json(self) -> dict[str, Any]:
        """Returns what `metrics.json` says about the attempt."""
        return {
            "seed": self.seed,
            "id_relative_mse": self.id_error,
            "decided": self.is_decided,
        }


@dataclass(frozen=True)
class Trainer:
    """Trains the models of a run, again until its ID target is met.

    Attributes:
        config: The run; has the target and the number of restarts.
        dataset: Its data.
        models: Its models, which have the best weights after training.
        monitor: Scores the models.
        callbacks: Callbacks of `fit`, the monitor included.
    """

    config: RunConfig
    dataset: Dataset
    models: PreparedModels
    monitor: Monitor
    callbacks: Sequence[keras.callbacks.Callback]

    def train(self) -> dict[str, Any]:
        """Trains the models.

        Returns:
            What it cost, with the scores before training, `untrained`.

        Raises:
            ConfigError: The ID target is impossible, or a callback stopped
                training early.
            DivergedError: The loss is not finite.
            RunError: None of the checkpoints can be read.
        """
        untrained = self.monitor.score_errors()
        target = self.config.training.id_target
        if target and untrained["id"] is None:
            rule = "must be 0: no ID image differs from the reference"
            raise ConfigError("id_target", rule, target)
        if target:
            return self._train_to_target()
        folder = Path(self.config.run_dir) / "checkpoints"
        cost = self._fit(self.config, folder)
        cost["untrained"] = untrained
        return cost

    def _fit(self, config: RunConfig, folder: Path) -> dict[str, Any]:
        return fit_model(
            self.models.trained,
            self.dataset,
            config,
            str(folder),
            self.callbacks,
        )

    def _train_to_target(self) -> dict[str, Any]:
        """Ends with the best attempt; the cost names what became of each."""
        attempts = self._train_attempts()
        costs = []
        for attempt in attempts:
            if attempt.cost is not None:
                costs.append(attempt.cost)
        last = attempts[-1]
        if last.problem and not costs:
            raise last.problem

        ranks = [attempt.rank for attempt in attempts]
        best = ranks.index(min(ranks))
        attempt = last
        if attempt is not attempts[best]:  # its checkpoint has its weights
            attempt = self._train_attempt(best)
        seconds = [cost["seconds"] for cost in costs]
        cost = dict(attempt.cost or {})
        cost["seconds"] = sum(seconds)
        cost["seed"] = attempt.seed
        cost["attempts"] = [attempt.to_json() for attempt in attempts]
        return cost

    def _train_attempts(self) -> list[Attempt]:
        """Trains until an attempt meets the target, or no restart is left."""
        restarts = self.config.training.restarts
        goal = (False, self.config.training.id_target)
        attempts: list[Attempt] = []
        for number in range(restarts + 1):
            attempt = self._train_attempt(number)
            attempts.append(attempt)
            if attempt.rank <= goal:
                break
            if number < restarts:
                again = f"restart {number + 1} of at most {restarts}"
                print(f"note: {attempt.describe()}: {again}", file=sys.stderr)
        return attempts

    def _train_attempt(self, number: int) -> Attempt:
        """Trains from the attempt's checkpoint, which may be its end."""
        run = Path(self.config.run_dir)
        folder = run / "checkpoints"
        if number:
            folder = folder / f"restart_{number}"
        seed = derive_seed(self.config.training.seed, number)
        training = replace(self.config.training, seed=seed)
        config = replace(self.config, training=training)

        self.models.restart(config, self.dataset)
        history = self.monitor.history
        if list_epochs(folder):
            history.copy(run)
        else:  # a new attempt has no numbers of the one before
            history.copy(folder)
        untrained = self.monitor.score_errors()

        record = folder / "diverged.txt"
        try:
            if record.exists():
                raise DivergedError(files.read_text(record))
            cost = self._fit(config, folder)
        except DivergedError as error:
            files.make_folder(folder)
            files.write_text(record, str(error))
            return Attempt(seed, problem=error)

        curves = folder / HISTORY_FILE
        if not curves.exists():  # the next attempt overwrites the run's own
            history_text = files.read_text(run / HISTORY_FILE)
            files.write_text(curves, history_text)
        history.copy(folder)
        axes = []
        for layer in list_axis_embeddings(self.models.trained):
            axes.append(layer.find_axis())
        cost["untrained"] = untrained
        errors = self.monitor.score_errors()
        return Attempt(
            seed,
            cost=cost,
            id_error=errors["id"],
            is_decided=None not in axes,
        )


def derive_seed(seed: int, number: int) -> int:
    """Returns the seed of the initial weights and batches of an attempt.

    Args:
        seed: The seed of the run, which the first attempt has.
        number: The number of restarts before.
    """
    if not number:
        return seed
    sequence = np.random.SeedSequence([seed, number])
    (state,) = sequence.generate_state(1)
    return int(state >> 1)


def describe_environment() -> str:
    """Lists versions and settings that can change the last bits."""
    devices = tf.config.list_physical_devices()
    kinds = [device.device_type for device in devices]
    facts = {
        "tfcomp": tfcomp.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": np.__version__,
        "devices": ", ".join(kinds),
        "cores": count_cores(),
        "threads": os.environ.get("TF_NUM_INTRAOP_THREADS", "default"),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
    }
    lines = [f"{name}: {fact}\n" for name, fact in facts.items()]
    return "".join(lines)


def make_callbacks(config: RunConfig) -> list[keras.callbacks.Callback]:
    """Makes the registered callbacks, in the order of their names.

    Raises:
        RunError: A plugin makes something else.
    """
    callbacks = []
    for name in CALLBACKS.names():
        entry = CALLBACKS.get(name)
        make_callback = entry.load()
        callback = make_callback(config)
        if not isinstance(callback, keras.callbacks.Callback):
            kind = type(callback).__name__
            rule = f"the callback {name!r} must be a Keras callback"
            raise RunError(f"--plugins: {rule}, it is a {kind}")
        callbacks.append(callback)
    return callbacks
