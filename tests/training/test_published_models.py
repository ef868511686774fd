"""The models of this repository: lists and scores."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import RunError
from tfcomp.metrics.references import score_certified
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import load_run
from tfcomp.storage import run_folder
from tfcomp.storage.run_folder import PUBLISHED, find_published, select_scores

FOLDER = Path(__file__).parents[2] / PUBLISHED
MNIST = Path(__file__).parents[3] / "shared" / "tensorflow_datasets"
NAMES = tfcomp.list_published(FOLDER)
SMALL = "bumps/coordinate/corner_9"
MAX_BYTES = 5_100_000


def read_metrics(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name / "metrics.json").read_text())


def test_a_published_model_is_a_run() -> None:
    loaded = tfcomp.load_published(SMALL, FOLDER)
    run = tfcomp.load_run(FOLDER / SMALL)
    np.testing.assert_array_equal(loaded.draw(x=3, y=4), run.draw(x=3, y=4))
    assert loaded.path == FOLDER / SMALL


def test_own_runs_are_listed_by_their_folders(smoke_run) -> None:
    source = Path(smoke_run.log_dir)
    assert smoke_run.run_name in tfcomp.list_published(source)
    found = find_published(smoke_run.run_name, str(source))
    assert found == Path(smoke_run.run_dir)


def test_names_that_are_not_listed(tmp_path, monkeypatch) -> None:
    with pytest.raises(RunError, match="bumps/additive/corner_9"):
        tfcomp.load_published("bumps/aditive/corner_9", FOLDER)
    for name in ("", "paper", "../published/paper/donut"):
        with pytest.raises(RunError):
            find_published(name, FOLDER)
    with pytest.raises(RunError):
        tfcomp.list_published(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert tfcomp.list_published() == NAMES  # of the clone
    monkeypatch.setattr(run_folder, "CLONE", tmp_path)
    with pytest.raises(RunError, match="clone"):
        tfcomp.list_published()


def test_lists_have_the_numbers_of_the_files() -> None:
    with open(FOLDER / "all.csv", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    page = (FOLDER / "README.md").read_text("utf-8")
    for name in NAMES:
        metrics = read_metrics(name)
        errors = [metrics[s]["relative_mse"] for s in ("id", "ood")]
        row = rows[name]
        assert float(row["id_relative_mse"]) == errors[0]
        assert float(row["ood_relative_mse"]) == errors[1]
        assert float(row["ood_r2"]) == metrics["r2"]["ood"]
        (line,) = [ln for ln in page.splitlines() if f"`{name}`" in ln]
        for error in errors:
            assert f"| {error:.4g} |" in line
    assert page.count("| `") == len(NAMES)
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == SMALL else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_recorded_scores(name, monkeypatch) -> None:
    """Another machine computes them from the same weights, but for rounding."""
    if MNIST.exists():
        monkeypatch.setenv("TFDS_DATA_DIR", str(MNIST))
    run = load_run(FOLDER / name)
    result = RunAnalysis.of_run(run).evaluation
    for subset, scores in select_scores(run.metrics).items():
        expected = {k: v for k, v in scores.items() if v is not None}
        scores = {name: result.scores[subset][name] for name in expected}
        assert scores == pytest.approx(expected, rel=1e-3, abs=1e-7)
    r2 = score_certified(run.dataset, result, None)
    assert r2 == pytest.approx(run.metrics["r2"], rel=1e-3, abs=1e-7)
    assert run.metrics["train"]["weights"] == run.model.count_params()
