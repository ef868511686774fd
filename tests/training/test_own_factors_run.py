"""Runs on colored images of many factors, from training to the report."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.own_factors import REGIONS
from tfcomp import analyze
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.measures import measure_study
from tfcomp.evaluation.study import Study
from tfcomp.training.experiment import train_and_evaluate

MODELS = {"tiles": "cnn", "one": "mlp", "seven": "mlp"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunConfig]:
    folder = tmp_path_factory.mktemp("own")
    configs = {}
    for name, region in REGIONS.items():
        flags = [
            "--flagfile=smoke.flags",
            f"--dataset={name}",
            f"--region={region}",
            f"--model={MODELS[name]}",
            "--epochs=2",
            "--width=8",
            f"--export={name == 'tiles'}",
            f"--run_name={name}",
            f"--log_dir={folder}/logs",
            f"--export_dir={folder}/models",
        ]
        configs[name] = parse_config(flags)
        train_and_evaluate(configs[name])
    return configs


@pytest.fixture(scope="module")
def report(
    runs: dict[str, RunConfig], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("report")
    paths = ",".join(config.run_dir for config in runs.values())
    assert (
        analyze.main(["analyze", f"--run={paths}", f"--output={folder}"]) == 0
    )
    return folder


def load_study(config: RunConfig) -> Study:
    return Study(load_run(config.run_dir))


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_relative_errors_of_color_refer_to_the_mean_training_image(
    runs: dict[str, RunConfig],
) -> None:
    study = load_study(runs["tiles"])
    dataset, splits = study.dataset, study.splits
    mean = dataset.render_array(splits.train).mean(axis=0)
    rows = splits.is_ood
    truth = dataset.render_array(splits.grid[rows])
    images = study.run.model.predict(splits.grid[rows], verbose=0)
    expected = np.mean((images - truth) ** 2) / np.mean((mean - truth) ** 2)
    scores = study.run.metrics["ood"]
    assert scores["relative_mse"] == pytest.approx(expected, rel=1e-4)
    assert scores["position_error"] is None


def test_report_of_all(report: Path) -> None:
    assert (report / "report.html").exists()
    rows = read_csv(report / "tiles_samples_ood.csv")
    assert {row["color"] for row in rows} <= {"green", "blue"}


@pytest.mark.parametrize("name", list(REGIONS))
def test_measures_are_plain_numbers(
    runs: dict[str, RunConfig], name: str
) -> None:
    found = measure_study(load_study(runs[name]))
    assert found["stages"][-1] == "image"
