"""The example validator: planted anomalies, and none in good data."""

from pathlib import Path

import numpy as np
import pytest

from pipelines.steps import compare_split, find_anomalies
from tests.datasets.own_tables import make_data
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset
from tfcomp.datasets.materialized import Examples, materialize, render_splits

LINE = "smoke --region=corner:7"
GOOD = {
    "continuous": f"{LINE} --coordinates=continuous",
    "control": f"{LINE} --train_all",
    "several images": "--dataset=table --data=own.npz --model=mlp "
    "--factors=a,b --region=a:2,b:2",
    "digit": "rotated_mnist --digit_source=stand_in --num_angles=37",
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return make_data(LINE)


@pytest.fixture
def train(dataset: Dataset) -> Examples:
    """The training examples as they should be."""
    return render_splits(dataset)["train"]


@pytest.mark.parametrize("kind", GOOD)
def test_good_data_have_no_anomalies(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).random((18, 4, 4))
    images[0] = 0.5  # blank as it is
    classes = np.argwhere(np.ones((3, 3, 2)))
    names = ["a", "b", "c"]
    np.savez(
        "own.npz",
        images=images,
        classes=classes,
        names=names,
    )
    config = parse_config(GOOD[kind].split())

    materialize(config, tmp_path)

    assert list(find_anomalies(config, tmp_path)) == []


def test_moved_example(train: Examples):
    factors = train.factors.copy()
    factors[3] += 0.25
    moved = Examples(factors, train.images)
    (problem,) = compare_split("train", moved, train)
    assert problem.startswith("factors")
    assert problem.endswith(" 3")


@pytest.mark.parametrize("pixel", [np.nan, 1.0, 0.001])
def test_wrong_pixels(pixel: float, train: Examples):
    images = train.images.copy()
    images[4, 0, 0] += pixel
    wrong = Examples(train.factors, images)
    (problem,) = compare_split("train", wrong, train)
    assert problem.startswith("images")
    assert problem.endswith(" 4")


def test_absent_dataset_is_an_anomaly(tmp_path: Path):
    config = parse_config(LINE.split())
    assert len(list(find_anomalies(config, tmp_path))) == 2  # both splits
