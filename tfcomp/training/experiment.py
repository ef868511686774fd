"""One run, from configuration to files: the recipe.

dataset -> model -> training -> evaluation -> export -> metrics.json
"""

import json
import os
import textwrap
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tfcomp
from tfcomp.config.errors import RunError
from tfcomp.config.process import count_cores
from tfcomp.config.registry import CALLBACKS
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import attach_examples
from tfcomp.datasets.solvable import measure_coverage
from tfcomp.evaluation.metrics import USER_METRICS, describe_user_metrics
from tfcomp.evaluation.user_metrics import try_metrics
from tfcomp.storage import run_folder
from tfcomp.storage.files import write_text, write_whole
from tfcomp.storage.run_folder import METRICS_FILE, MODEL_FILE
from tfcomp.training.export import export_scored
from tfcomp.training.monitor import Monitor
from tfcomp.training.prepared_models import prepare_models
from tfcomp.training.restarts import train_to_target
from tfcomp.training.strategy import make_strategy
from tfcomp.training.summaries import RunSummaries


def train_and_evaluate(
    config: RunConfig, dataset: Dataset | None = None
) -> dict[str, Any]:
    """Runs one experiment and returns the content of `metrics.json`.

    A finished run is not trained again. Of a run that has lost its scores or
    its model, they are made again from the last checkpoint.

    Raises:
        ConfigError: Settings are impossible on this machine.
        RunError: The run folder cannot be used.
        DivergedError: The loss is not finite.
    """
    dataset = dataset or make_dataset(config)
    notes = dataset.prepare()
    for note in notes if isinstance(notes, tuple) else ():
        print(note)
    dataset = attach_examples(config, dataset)
    try_metrics(dataset)
    strategy = make_strategy(config.training.num_replicas)
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
    with prepare_models(config, dataset, strategy) as models:
        model, observed = models.trained, models.observed
        summaries = RunSummaries(config, dataset)
        summaries.write_description(model, describe_environment())
        monitor = Monitor(config, models, dataset, summaries)
        callbacks = make_callbacks(config)
        untrained = monitor.score_untrained(model)
        cost = train_to_target(config, dataset, models, monitor, callbacks)
        cost["weights"] = model.count_params()
        metrics = {**monitor.finish(model), "train": cost}
        metrics["untrained"] = untrained
        metrics["coverage"] = measure_coverage(dataset)
        subsets = dataset.subsets.items()
        metrics["points"] = {name: int(rows.sum()) for name, rows in subsets}
        if copies := dataset.copies.summary:
            metrics["copies"] = copies
        if own := describe_user_metrics():
            metrics[USER_METRICS] = own
        summaries.close()
        with write_whole(folder / MODEL_FILE) as partial:
            observed.save(partial)
        if config.export:
            steps = models.evaluator.nondifferentiable
            export_scored(observed, config, dataset, metrics, steps=steps)
    text = json.dumps(metrics, indent=2, allow_nan=False)
    for callback in callbacks:
        if end := getattr(callback, "on_run_end", None):
            end(metrics)
    write_text(folder / METRICS_FILE, f"{text}\n")
    return metrics


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
    """Makes the registered callbacks, in the order of their names.

    In `on_epoch_end`, `logs` have the loss and, in epochs that were scored, ID
    and OOD scores by the names of TensorBoard (`id/mse`). `on_run_end`, where
    it exists, is called with the content of `metrics.json`.
    """
    made = {n: CALLBACKS.get(n).load()(config) for n in CALLBACKS.names()}
    for name, found in made.items():
        if not isinstance(found, keras.callbacks.Callback):
            raise RunError(
                f"--plugins: the callback {name!r} must be a Keras callback, "
                f"it is a {type(found).__name__}"
            )
    return list(made.values())
