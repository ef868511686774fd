"""One run, from configuration to files: the recipe.

dataset -> model -> training -> evaluation -> export -> metrics.json
"""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tfcomp
from tfcomp.config.machine import count_cores
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets import make_dataset
from tfcomp.datasets.materialized import attach_examples
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.storage.files import write_text
from tfcomp.storage.files import write_whole
from tfcomp.storage.run_folder import METRICS_FILE
from tfcomp.storage.run_folder import MODEL_FILE
from tfcomp.storage.run_folder import claim_run
from tfcomp.training.export import export_model
from tfcomp.training.fit import fit_model
from tfcomp.training.monitor import Monitor
from tfcomp.training.prepared_models import prepare_models
from tfcomp.training.strategy import make_strategy
from tfcomp.training.summaries import RunSummaries


def train_and_evaluate(config: RunConfig) -> dict[str, Any]:
    """Runs one experiment and returns the content of `metrics.json`.

    A finished run is not trained again: its scores are returned.

    Raises:
        ConfigError: If the settings are impossible on this machine.
        RunError: If the run folder cannot be used, or training diverges.
    """
    dataset = make_dataset(config)
    dataset.prepare()
    dataset = attach_examples(config, dataset)
    strategy = make_strategy(config.training.num_replicas)
    header = textwrap.indent(describe_environment(), "# ")
    with claim_run(config, header):
        finished = Path(config.run_dir) / METRICS_FILE
        if finished.exists():
            return json.loads(finished.read_text())
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
        checkpoints = str(folder / "checkpoints")
        cost = fit_model(model, dataset, config, checkpoints, [monitor])
        metrics = {**monitor.finish(model), "train": cost}
        summaries.close()
        with write_whole(folder / MODEL_FILE) as partial:
            observed.save(partial)
        if config.export:
            jacobian_fn = choose_jacobian(observed, dataset.space)
            export_model(observed, config.export_path, jacobian_fn)
    text = json.dumps(metrics, indent=2, allow_nan=False)
    write_text(folder / METRICS_FILE, f"{text}\n")
    return metrics


def describe_environment() -> str:
    """Versions and settings that can change the last bits, one a line."""
    facts = {
        "tfcomp": tfcomp.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": np.__version__,
        "devices": ", ".join(
            device.device_type for device in tf.config.list_physical_devices()
        ),
        "cores": count_cores(),
        "threads": os.environ.get("TF_NUM_INTRAOP_THREADS", "default"),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
    }
    return "".join(f"{name}: {fact}\n" for name, fact in facts.items())
