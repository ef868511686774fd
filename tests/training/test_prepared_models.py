"""A run that takes over the models of the last one has the bits of its own."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal

from tests.conftest import make_smoke_config
from tfcomp.config.plugins import Entry
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import list_flag_lines
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.metrics.run_analysis import RunAnalysis, measure_run
from tfcomp.models import MODELS
from tfcomp.models.loading import load_run
from tfcomp.sweeps.worker_task import run_trial
from tfcomp.training import callbacks, prepared_models
from tfcomp.training.experiment import train_and_evaluate

# x has profiles, of which an axis is pruned, and y low-rank matrices.
RENDERING = (
    "--model=hard_rendering",
    "--encoding=one_hot",
    "--axes=x:find,y:none",
    "--width=4",
    "--rank=4",
    "--entropy_weight=0.1",
    "--variance_weight=0.1",
    "--prune_below=0.99",
    "--decay=cosine",
)


def train(config: RunConfig) -> tuple[list[np.ndarray], dict[str, Any]]:
    metrics = train_and_evaluate(config)
    model = keras.models.load_model(Path(config.run_dir) / "model.keras")
    return model.get_weights(), {
        **metrics,
        "train": None,
    }


@pytest.mark.slow
def test_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "FITTED", 9.0)  # prunes the first run, too
    flags = "--eval_every=0 --pictures=false --export=false --epochs=3"
    flags += " --steps_per_epoch=9 --grid_size=8 --region=square:3-4 --depth=1"

    def make(name: str, seed: int) -> RunConfig:
        own = f"--seed={seed}", f"--run_name={name}"
        return make_smoke_config(tmp_path, *flags.split(), *RENDERING, *own)

    train(make("first", 1))
    (kept,) = prepared_models._kept.values()
    weights, metrics = train(make("taken_over", 2))
    assert kept in prepared_models._kept.values()
    prepared_models._kept.clear()
    own_weights, own_metrics = train(make("own", 2))
    for ours, theirs in zip(weights, own_weights, strict=True):
        assert_array_equal(ours, theirs)
    assert json.dumps(metrics) == json.dumps(own_metrics)


def test_what_observes_is_kept_for_the_same_network(make_smoke, monkeypatch):
    """Not the trained model; nor for another network, grid or own part."""
    monkeypatch.setattr(prepared_models, "_kept", {})
    build = MODELS.get("mlp").target
    small = ("--model=mlp", "--depth=1")
    strategy = prepared_models.make_strategy()

    def build_own(config: RunConfig, dataset: Dataset) -> keras.Model:
        model = build(config, dataset)
        noisy = keras.layers.Dropout(0.5)(model.output)
        return keras.Model(model.input, noisy)

    monkeypatch.setitem(MODELS._entries, "own", Entry(build_own))

    def prepare(*flags: str) -> prepared_models.PreparedModels:
        keras.backend.clear_session()  # names count from 1, as in a trial
        config = make_smoke(*small, *flags)
        data = make_dataset(config)
        with prepared_models.prepare_models(config, data, strategy) as models:
            return models

    first = prepare()
    other = prepare("--learning_rate=0.1", "--region=corner:7", "--seed=3")
    assert other.traced is first.traced
    assert other.trained is not first.trained
    for flag in ("--width=8", "--grid_size=16"):
        assert prepare(flag).traced is not first.traced
    plugin = dataclasses.replace(make_smoke(*small), plugins="json")
    in_notebook = make_smoke(*small, "--model=own")
    for own in (plugin, in_notebook):
        data = make_dataset(own)
        with prepared_models.prepare_models(own, data, strategy) as models:
            variables = models.trained.variables  # of dropout, too
            start = [variable.numpy() for variable in variables]
        assert not prepared_models._kept
    models.trained(data.splits.grid, training=True)
    models.restart(own, data)
    end = [variable.numpy() for variable in variables]
    assert_equal(end, start)


@pytest.mark.slow
def test_a_trial_is_measured_by_what_observed_it(make_smoke, monkeypatch):
    """The same bytes as of a run that is measured by itself."""
    monkeypatch.setattr(prepared_models, "_kept", {})
    flags = "--epochs=1 --steps_per_epoch=5 --model=mlp --depth=1 --width=4"
    flags += " --grid_size=6 --region=square:2-3 --eval_every=0"
    config = make_smoke(*flags.split())
    run_trial(["run_trial", *list_flag_lines(config), "--measure"])
    (traced,) = prepared_models.list_traced()
    run = load_run(config.run_dir)

    assert RunAnalysis.of_run(run, traced=[traced]).run.model is traced.model
    assert RunAnalysis.of_run(run).run.model is run.model

    file = Path(config.run_dir, "metrics.json")
    measured = file.read_bytes()
    metrics = json.loads(measured)
    assert metrics.pop("measures")["start"]

    file.write_text(json.dumps(metrics))
    measure_run(config.run_dir)
    assert file.read_bytes() == measured
