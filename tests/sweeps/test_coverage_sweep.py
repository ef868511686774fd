"""`tfcomp sweep --coverage` from the command to its tables, on planted models.

A trial makes its data as a training does, and its model by `--depth`: a sum of
parts that is fitted to training images (2), a memory of these (3), noise (4).
"""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tfcomp
from tests.sweeps import fake_trial
from tests.sweeps.fake_sweep import make_call, use_pool
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.datasets import make_dataset, solvable
from tfcomp.datasets.dataset import Dataset
from tfcomp.metrics.references import score_references
from tfcomp.sweeps.sweep_run import Sweep

SIZE = 6
INDEX = np.array(list(np.ndindex(SIZE, SIZE)))
X, Y = INDEX.T
PARTS = np.random.default_rng(0).uniform(0, 0.5, (2, SIZE, 12))
IMAGES = PARTS[0, X] + PARTS[1, Y]
FOLDER = Path("tensorboard_logs/s")
COMMAND = [
    "sweep",
    "--dataset=table",
    "--data=own.npz",
    "--encoding=one_hot",
    "--model=mlp",
    "--run_name=s",
    "--grid=depth=2,3,4",
    "--coverage=random:.2,.35,.6,.85",
    "--seeds=2",
]


def predict(dataset: Dataset, depth: int, truth: np.ndarray) -> np.ndarray:
    """Predicts all images [n, pixels], as a model of this depth would."""
    is_id = dataset.splits.is_id
    if depth == 4:
        return np.random.default_rng(0).uniform(size=truth.shape)
    if depth == 3:
        mean = truth[is_id].mean(axis=0)
        return np.where(is_id[:, None], truth, mean)

    index = dataset.space.to_index(dataset.splits.grid)
    one_hot = np.eye(SIZE)[index]  # [n, factors, SIZE]
    codes = one_hot.reshape(len(index), -1)
    weights, *_ = np.linalg.lstsq(codes[is_id], truth[is_id], rcond=None)
    return codes @ weights


def run_trial(argv: list[str]):
    config = run_flags.parse_config(argv[1:])
    dataset = make_dataset(config)
    folder = Path(config.run_dir)
    folder.mkdir(parents=True)
    zipfile.ZipFile(folder / "model.keras", "w").close()
    (folder / "run.flags").write_text("\n".join(argv[1:]))
    metrics = measure(dataset, config.model.depth)
    (folder / "metrics.json").write_text(json.dumps(metrics))


def measure(dataset: Dataset, depth: int) -> dict[str, Any]:
    """The scores of a model of this depth, and what a training adds."""
    images = dataset.grid_images
    truth = images.reshape(len(images), -1)
    errors = np.square(predict(dataset, depth, truth) - truth)
    is_ood = dataset.splits.is_ood
    variance = truth[is_ood].var(axis=0).mean()
    r2 = 1 - errors[is_ood].mean() / variance
    certificates = solvable.certify_dataset(dataset)
    return {
        "id": {"relative_mse": 0.01},
        "ood": {"r2": float(r2)},
        "coverage": solvable.measure_coverage(dataset),
        "certificate": solvable.summarize_certificates(dataset, certificates),
        "references": score_references(dataset, images),
    }


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the sweep prints, in whose folder all tests work."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("coverage"))
        images = IMAGES.reshape(-1, 3, 4)
        np.savez("own.npz", images=images, classes=INDEX, names=["x", "y"])
        patch.setattr(fake_trial, "run_trial", run_trial)
        patch.setattr(Sweep, "make_call", make_call)
        patch.setattr("tfcomp.figures.exhibits.figure_to_pdf", lambda _: b"")
        use_pool(patch, PoolHere())
        with redirect_stdout(output):
            assert sweep.main(COMMAND) == 0
        yield output.getvalue()


@pytest.fixture
def curves(printed: str) -> pd.DataFrame:
    """The scores over the coverage, a line for each depth."""
    return pd.read_csv(FOLDER / "figures/coverage_ood_r2.csv")


def test_a_sum_needs_the_certificate_and_others_never_have_enough(
    curves: pd.DataFrame,
    printed: str,
):
    is_determined = curves["determined"] == 1
    needed = curves[is_determined]["coverage"].min()
    assert (curves["all_determined"] == needed).all()
    enough = curves.groupby("line")["enough"].first()
    assert enough.loc["depth 2"] == needed
    assert enough.loc[["depth 3", "depth 4"]].isna().all()
    assert curves["n"].tolist() == [2] * 12
    assert "depth 2: enough from 0.6" in printed
    assert (FOLDER / "figures/coverage_ood_r2.png").exists()

    # The same from the runs alone.
    tables = tfcomp.read_runs(FOLDER)
    again = tfcomp.coverage_table(*tables, by="depth")
    assert again.groupby("line")["enough"].first()["depth 2"] == needed


def test_a_sum_and_the_additive_predictor_are_exact_where_it_holds(
    curves: pd.DataFrame,
):
    sums = curves[curves["line"] == "depth 2"]
    is_determined = (sums["determined"] == 1).tolist()
    for column in ("mean", "additive"):
        is_exact = sums[column] > 1 - 1e-5
        assert is_exact.tolist() == is_determined


def test_each_seed_has_a_split_under_the_name_of_one_setting(
    printed: str,
):
    runs, _ = tfcomp.read_runs(FOLDER)
    assert runs["region"].nunique() == 8
    trials = pd.read_csv(FOLDER / "trials.csv")
    assert trials["region"].nunique() == 4
    scores = pd.read_csv(FOLDER / "figures/scores.csv")
    assert (scores["mark"] == "mean").sum() == 12


@pytest.mark.parametrize(
    ("flag", "word"),
    [
        ("--coverage=.1,.2", "--coverage"),
        ("--coverage=uselis:3:1,4", "--region"),
        ("--grid=region=none,corner:4", "--grid"),
    ],
)
def test_mistakes_write_nothing(printed: str, flag: str, word: str):
    with pytest.raises(ConfigError, match=word):
        sweep.main([*COMMAND, "--run_name=mistake", flag])
    assert not FOLDER.with_name("mistake").exists()
