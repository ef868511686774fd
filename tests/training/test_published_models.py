"""The models of this repository: lists and scores."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pytest import approx

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


def test_a_published_model_is_a_run():
    loaded = tfcomp.load_published(SMALL, FOLDER)
    run = tfcomp.load_run(FOLDER / SMALL)

    np.testing.assert_array_equal(loaded.draw(x=3, y=4), run.draw(x=3, y=4))
    assert loaded.path == FOLDER / SMALL


def test_own_runs_are_listed_by_their_folders(smoke_run):
    source = Path(smoke_run.log_dir)

    assert smoke_run.run_name in tfcomp.list_published(source)

    found = find_published(smoke_run.run_name, str(source))
    assert found == Path(smoke_run.run_dir)


def test_names_that_are_not_listed(tmp_path, monkeypatch):
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


def test_lists_have_the_numbers_of_the_files():
    table = pd.read_csv(FOLDER / "all.csv").set_index("name")
    page = (FOLDER / "README.md").read_text("utf-8")
    assert page.count("| `") == len(NAMES)

    for name in NAMES:
        file = FOLDER / name / "metrics.json"
        metrics = json.loads(file.read_text())
        row = table.loc[name]
        assert row["ood_r2"] == approx(metrics["r2"]["ood"])
        (line,) = [line for line in page.splitlines() if f"`{name}`" in line]
        for subset in ("id", "ood"):
            error = metrics[subset]["relative_mse"]
            assert row[f"{subset}_relative_mse"] == approx(error)
            assert f"| {error:.4g} |" in line


def test_published_files_are_small():
    sizes = [p.stat().st_size for p in FOLDER.rglob("*") if p.is_file()]
    assert sum(sizes) < MAX_BYTES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == SMALL else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_recorded_scores(name, monkeypatch):
    """Another machine computes them from the same weights, but for rounding."""
    if MNIST.exists():
        monkeypatch.setenv("TFDS_DATA_DIR", str(MNIST))
    run = load_run(FOLDER / name)

    evaluation = RunAnalysis.of_run(run).evaluation

    for subset, recorded in select_scores(run.metrics).items():
        for key, value in recorded.items():
            if value is not None:
                score = evaluation.scores[subset][key]
                assert score == approx(value, rel=1e-3, abs=1e-7)
    r2 = score_certified(run.dataset, evaluation, None)
    assert r2 == approx(run.metrics["r2"], rel=1e-3, abs=1e-7)
    assert run.metrics["train"]["weights"] == run.model.count_params()
