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
    """Runs one experiment, as far as needed; returns its `metrics.json`."""
    # First: TensorFlow divides a CPU before it computes anything.
    strategy = prepared_models.make_strategy(config.training.num_replicas)
    dataset = dataset or make_dataset(config)
    notes = dataset.prepare()
    for note in notes if isinstance(notes, tuple) else ():
        print(note)
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
        callbacks = make_callbacks(config)
        untrained = monitor.score_errors(model)
        if (target := config.training.id_target) and untrained["id"] is None:
            rule = "must be 0: no ID image differs from the reference"
            raise ConfigError("id_target", rule, target)
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
    for callback in callbacks:
        if end := getattr(callback, "on_run_end", None):
            end(metrics)
    files.write_text(folder / METRICS_FILE, f"{text}\n")
    return metrics


def train_to_target(
    config: RunConfig,
    dataset: Dataset,
    models: prepared_models.PreparedModels,
    monitor: Monitor,
    user_callbacks: Sequence[keras.callbacks.Callback],
) -> dict[str, Any]:
    """Trains until the ID target is met; ends with the best attempt."""
    run, callbacks = Path(config.run_dir), [monitor, *user_callbacks]
    target, most = config.training.id_target, config.training.restarts
    checkpoints = run / "checkpoints"
    costs: dict[int, dict[str, Any]] = {}  # of attempts that did not diverge
    model = models.trained
    if not target:
        return fit_model(model, dataset, config, str(checkpoints), callbacks)

    def train(number: int) -> dict[str, Any]:
        seed = derive_seed(config.training.seed, number)
        training = dataclasses.replace(config.training, seed=seed)
        restarted = dataclasses.replace(config, training=training)
        folder = checkpoints / (f"restart_{number}" * bool(number))
        curves, record = folder / HISTORY_FILE, folder / "diverged.txt"
        models.restart(restarted, dataset)
        # A new attempt has no numbers of the one before.
        monitor.history.copy(run if list_epochs(folder) else folder)
        untrained = monitor.score_errors(model)
        attempt: dict[str, Any] = {"seed": seed, "id_relative_mse": None}
        attempt["decided"] = False
        try:
            if record.exists():
                raise DivergedError(files.read_text(record))
            cost = fit_model(model, dataset, restarted, str(folder), callbacks)
        except DivergedError as error:
            files.make_folder(folder)
            files.write_text(record, str(error))
            if number == most and not costs:
                raise
            return attempt
        if not curves.exists():  # the next attempt overwrites those of the run
            files.write_text(curves, files.read_text(run / HISTORY_FILE))
        monitor.history.copy(folder)
        score = monitor.score_errors(model)["id"]
        is_decided = all(x.find_axis() is not None for x in list_axes(model))
        attempt |= {"id_relative_mse": score, "decided": is_decided}
        costs[number] = {**cost, "untrained": untrained}
        return attempt

    attempts, ranks = [], []
    for number in range(most + 1):
        attempts.append(attempt := train(number))
        error = attempt["id_relative_mse"]
        rank = not attempt["decided"], math.inf if error is None else error
        ranks.append(rank)
        if rank <= (False, target):
            break
        if number < most:
            axes = "" if attempt["decided"] else ", axes not decided"
            found = f"ID relative MSE {rank[1]:.3g}{axes}"
            found = "training diverged" if error is None else found
            again = f"restart {number + 1} of at most {most}"
            print(f"note: {found}: {again}", file=sys.stderr)
    # The lowest ID error, if possible among attempts with all axes decided.
    best = ranks.index(min(ranks))
    if best < number:
        train(best)
    return {
        **costs[best],
        "seconds": sum(cost["seconds"] for cost in costs.values()),
        "seed": attempts[best]["seed"],
        "attempts": attempts,
    }


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
    made = {n: CALLBACKS.get(n).load()(config) for n in CALLBACKS.names()}
    for name, found in made.items():
        if not isinstance(found, keras.callbacks.Callback):
            raise RunError(
                f"--plugins: the callback {name!r} must be a Keras callback, "
                f"it is a {type(found).__name__}"
            )
    return list(made.values())
