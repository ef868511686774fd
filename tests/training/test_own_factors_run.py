"""Runs on colored images of many factors: training, measures, report."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.own_factors import REGIONS
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.figures.projector import write_projections
from tfcomp.metrics.run_analysis import RunAnalysis, compute_metrics
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.models.stages import make_model
from tfcomp.training.experiment import train_and_evaluate


def make_config(name: str, *flags: str) -> RunConfig:
    small = ("--model=mlp", "--width=8", "--depth=1", f"--run_name={name}")
    data = (f"--dataset={name}", f"--region={REGIONS[name]}")
    return parse_config(["--flagfile=smoke.flags", *data, *small, *flags])


def make_study(name: str, *flags: str) -> RunAnalysis:
    """A study of a network before training."""
    config = make_config(name, *flags)
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")
    return RunAnalysis.of_run(
        LoadedRun(Path("run"), config, dataset, model, {}, "")
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> RunAnalysis:
    folder = tmp_path_factory.mktemp("tiles")
    places = (f"--log_dir={folder}/logs", f"--export_dir={folder}/models")
    flags = ("--epochs=1", "--steps_per_epoch=5", "--noexport", "--nopictures")
    config = make_config("tiles", *flags, *places)
    train_and_evaluate(config)
    return RunAnalysis.of_run(load_run(config.run_dir))


def test_relative_errors_of_color_refer_to_the_mean_training_image(
    trained,
) -> None:
    dataset, splits = trained.dataset, trained.splits
    mean = dataset.render_array(splits.train).mean(axis=0)
    rows = splits.is_ood
    truth = dataset.render_array(splits.grid[rows])
    images = trained.run.model.predict(splits.grid[rows], verbose=0)
    expected = np.mean((images - truth) ** 2) / np.mean((mean - truth) ** 2)
    scores = trained.run.metrics["ood"]
    assert scores["relative_mse"] == pytest.approx(expected, rel=1e-4)
    assert scores["position_error"] is None
    write_projections(trained)
    assert "green" in (trained.run.path / "projector/metadata.tsv").read_text()


def test_references(trained) -> None:
    references = trained.run.metrics["references"]
    assert references["mean_image"]["ood"] == pytest.approx(1, abs=1e-6)
    assert references["nearest_id"]["id"] == 0
    assert 0 < references["additive"]["id"] < 1


@pytest.mark.parametrize(
    ("name", "encoding"), [("one", "ramp"), ("seven", "one_hot")]
)
def test_measures_are_plain_numbers(name, encoding) -> None:
    study = make_study(name, f"--encoding={encoding}")
    found = compute_metrics(study)
    json.dumps(found, allow_nan=False)
    assert ("sharing_near_r2_centered" in found) == (name != "one")
    assert ("anova_single" in found) == (name != "one")
    assert ("pair_share" in found) == (name != "one")
    assert ("factorization" in found) == (name != "one")


def test_probes_are_those_that_the_run_has_recorded() -> None:
    """At its own points alone: a map of others is probed itself."""
    planted = {"probe_r2_id": 0.125, "probe_r2_ood": -3.5}
    study = make_study("tiles", "--eval_points=100")
    study.run.metrics["layers"] = {s: dict(planted) for s in study.stages}
    fitted = make_study("tiles", "--eval_points=100")
    for other, is_same in ((study, True), (fitted, False)):
        row = other.layers.summary["stage_0"].items()
        assert (planted.items() <= row) == is_same
    row = study.for_maps.layers.summary["stage_0"].items()
    assert not planted.items() <= row
