"""Runs that an earlier version of tfcomp finished load and analyze today.

`tests/fixtures/earlier_runs.zip` holds two small runs, a CNN and a low-rank
network, as tfcomp wrote them before its files moved into packages: run
folder, Keras model and SavedModel.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tfcomp import analyze
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import load_run

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "earlier_runs.zip"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the logs and the SavedModels of both runs."""
    folder = tmp_path_factory.mktemp("earlier")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(params=["earlier_cnn", "earlier"])
def name(request: pytest.FixtureRequest) -> str:
    """The run: the CNN, then the low-rank network."""
    return request.param


def test_the_models_have_their_scores(earlier: Path, name: str) -> None:
    run = load_run(earlier / "tensorboard_logs" / name)
    scores = Evaluator(run.model, run.dataset).evaluate().scores
    for subset in ("id", "ood"):
        # Scores that were added since have no counterpart.
        known = {name: scores[subset][name] for name in run.metrics[subset]}
        assert known == pytest.approx(run.metrics[subset], rel=1e-5)
    served = tf.saved_model.load(str(earlier / "saved_models" / name / "1"))
    grid = run.dataset.splits.grid.astype(np.float32)
    drawn = served.signatures["serving_default"](factors=tf.constant(grid))
    np.testing.assert_allclose(drawn["image"], run.model(grid), atol=1e-6)
    metrics = served.signatures["geometry"](factors=tf.constant(grid))
    assert metrics["image"].shape == (len(grid), 2, 2)


def test_the_run_is_analyzed(earlier: Path) -> None:
    folder = earlier / "tensorboard_logs" / "earlier"
    assert (
        analyze.main(["analyze", f"--run={folder}", "--sections=errors"]) == 0
    )
    assert (folder / "analysis" / "report.html").exists()
