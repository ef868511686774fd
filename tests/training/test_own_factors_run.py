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
from tfcomp.models.registry import make_model
from tfcomp.training.experiment import train_and_evaluate

pytestmark = pytest.mark.usefixtures("untraced")


def make_config(name: str, *flags: str) -> RunConfig:
    return parse_config(
        [
            "--flagfile=smoke.flags",
            "--model=mlp",
            "--width=8",
            "--depth=1",
            f"--dataset={name}",
            f"--region={REGIONS[name]}",
            f"--run_name={name}",
            *flags,
        ]
    )


def make_study(name: str, *flags: str) -> RunAnalysis:
    """A study of a network before training."""
    config = make_config(name, *flags)
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")
    run = LoadedRun(Path("run"), config, dataset, model, {}, "")
    return RunAnalysis.of_run(run)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> RunAnalysis:
    folder = tmp_path_factory.mktemp("tiles")
    config = make_config(
        "tiles",
        "--epochs=1",
        "--steps_per_epoch=5",
        "--noexport",
        "--nopictures",
        f"--log_dir={folder}",
    )
    train_and_evaluate(config)
    return RunAnalysis.of_run(load_run(config.run_dir))


def test_relative_mse_of_color_refers_to_the_mean_training_image(
    trained,
):
    dataset = trained.dataset
    splits = dataset.splits
    points = splits.grid[splits.is_ood]
    truth = dataset.render_array(points)
    images = trained.run.model.predict(points, verbose=0)
    mean = dataset.render_array(splits.train).mean(axis=0)

    scores = trained.run.metrics["ood"]
    expected = np.mean((images - truth) ** 2) / np.mean((mean - truth) ** 2)
    assert scores["relative_mse"] == pytest.approx(expected, rel=1e-4)
    assert scores["position_error"] is None


def test_projections_name_the_levels(trained):
    write_projections(trained)
    file = trained.run.path / "projector/metadata.tsv"
    assert "green" in file.read_text()


def test_references(trained):
    references = trained.run.metrics["references"]

    assert references["mean_image"]["ood"] == pytest.approx(1, abs=1e-6)
    assert references["nearest_id"]["id"] == 0
    assert 0 < references["additive"]["id"] < 1


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("one", "ramp"), ("seven", "one_hot")],
)
def test_metrics_are_plain_numbers(name, encoding):
    study = make_study(name, f"--encoding={encoding}")

    metrics = compute_metrics(study)

    json.dumps(metrics, allow_nan=False)
    of_pairs = {
        "sharing_near_r2_centered",
        "anova_single",
        "pair_share",
        "factorization",
    }
    assert of_pairs & set(metrics) == (set() if name == "one" else of_pairs)


def test_probes_are_those_that_the_run_has_recorded():
    """At its own points alone: a map of others is probed itself."""
    recorded = {"probe_r2_id": 0.125, "probe_r2_ood": -3.5}
    study = make_study("tiles", "--eval_points=100")
    study.run.metrics["layers"] = {s: dict(recorded) for s in study.stages}

    own = study.layers.summary["stage_0"]
    other = study.for_maps.layers.summary["stage_0"]

    assert own.items() >= recorded.items()
    assert not other.items() >= recorded.items()
