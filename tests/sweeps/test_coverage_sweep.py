"""`tfcomp sweep --coverage` from the command to its tables, on planted models.

A trial makes its data as a training does, and its model by `--depth`: a sum of
parts that is fitted to training images (2), a memory of these (3), noise (4).
"""

import json
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components

import tfcomp
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset, solvable
from tfcomp.datasets.dataset import Dataset
from tfcomp.metrics.references import score_references
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.worker_task import TaskFunction

SIZE = 6
SHARES = [0.2, 0.35, 0.6, 0.85]
SEEDS = range(3)
INDEX = np.array(list(np.ndindex(SIZE, SIZE)))
PARTS = np.random.default_rng(0).uniform(0, 0.5, (2, SIZE, 12))
IMAGES = PARTS[0, INDEX[:, 0]] + PARTS[1, INDEX[:, 1]]
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
    "--seeds=3",
]


def predict(dataset: Dataset, depth: int, truth: np.ndarray) -> np.ndarray:
    """Predicts all images [n, pixels], as a model of this depth would."""
    splits = dataset.splits
    index = dataset.space.to_index(splits.grid)
    if depth == 4:
        return np.random.default_rng(0).uniform(size=truth.shape)
    if depth == 3:
        mean = truth[splits.is_id].mean(axis=0)
        return np.where(splits.is_id[:, None], truth, mean)
    codes = np.hstack([np.eye(SIZE)[index[:, 0]], np.eye(SIZE)[index[:, 1]]])
    known = codes[splits.is_id]
    weights, *_ = np.linalg.lstsq(known, truth[splits.is_id], rcond=None)
    return codes @ weights


def run_trial(argv: list[str]) -> None:
    config = run_flags.parse_config(argv[1:])
    dataset = make_dataset(config)
    is_ood = dataset.splits.is_ood
    images = dataset.grid_images
    truth = images.reshape(len(images), -1)
    output = predict(dataset, config.model.depth, truth)
    error = np.square(output - truth)[is_ood].mean()
    variance = truth[is_ood].var(axis=0).mean()
    certificates = solvable.certify_dataset(dataset)
    metrics = {
        "id": {"relative_mse": 0.01},
        "ood": {"r2": float(1 - error / variance)},
        "coverage": solvable.measure_coverage(dataset),
        "certificate": solvable.summarize_certificates(dataset, certificates),
        "references": score_references(dataset, images),
    }
    folder = Path(config.run_dir)
    folder.mkdir(parents=True)
    zipfile.ZipFile(folder / "model.keras", "w").close()
    (folder / "run.flags").write_text("\n".join(argv[1:]))
    (folder / "metrics.json").write_text(json.dumps(metrics))


def make_call(
    _: Sweep,
    trial: Trial,
) -> tuple[RunConfig, TaskFunction, list[str]]:
    return trial.config, run_trial, run_flags.list_flag_lines(trial.config)


@pytest.fixture
def data(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images that are sums of parts, and a pool in this process."""
    images = IMAGES.reshape(-1, 3, 4)
    np.savez("own.npz", images=images, classes=INDEX, names=["x", "y"])
    monkeypatch.setattr(Sweep, "make_call", make_call)
    pool = PoolHere()
    monkeypatch.setattr(sweep_run, "open_pool", lambda *_: nullcontext(pool))


def is_connected(share: float, seed: int) -> bool:
    """The slow certificate: do held-out levels lie in one part each?"""
    rng = np.random.default_rng([seed, SIZE**2])
    count = max(1, round((1 - share) * SIZE**2))
    places = rng.permutation(SIZE**2)
    held_out = INDEX[places[:count]]
    x, y = INDEX[places[count:]].T
    graph = np.zeros((2 * SIZE, 2 * SIZE))
    graph[x, SIZE + y] = 1
    _, part = connected_components(graph, directed=False)
    return bool((part[held_out[:, 0]] == part[SIZE + held_out[:, 1]]).all())


def test_planted_models(data: None, capsys: pytest.CaptureFixture) -> None:
    """A sum needs the certificate, a memory needs all, noise never does."""
    assert sweep.main(COMMAND) == 0

    needed = None
    for share in reversed(SHARES):
        if not all(is_connected(share, seed) for seed in SEEDS):
            break
        needed = round(round(share * SIZE**2) / SIZE**2, 6)
    table = pd.read_csv(FOLDER / "figures/coverage_ood_r2.csv")
    assert needed is not None
    assert (table["all_determined"] == needed).all()
    enough = table.groupby("line")["enough"].first()
    assert enough.loc["depth 2"] == needed
    assert enough.loc[["depth 3", "depth 4"]].isna().all()

    sums = table[table["line"] == "depth 2"]
    is_exact = (sums["mean"] > 1 - 1e-5).tolist()
    assert is_exact == (sums["determined"] == 1).tolist()
    # So is the additive predictor.
    assert (sums["additive"] > 1 - 1e-5).tolist() == is_exact
    assert table["n"].tolist() == [3] * 12
    assert (FOLDER / "figures/coverage_ood_r2.png").exists()
    assert "depth 2: enough from 0.6" in capsys.readouterr().out

    # The same from the runs alone.
    tables = tfcomp.read_runs(FOLDER)
    again = tfcomp.coverage_table(*tables, by="depth").groupby("line")
    assert again["enough"].first().loc["depth 2"] == needed

    # Each seed has its own split, under the name of one setting.
    assert tables[0]["region"].nunique() == 12
    trials = pd.read_csv(FOLDER / "trials.csv")
    assert trials["region"].nunique() == 4
    scores = pd.read_csv(FOLDER / "figures/scores.csv")
    assert (scores["mark"] == "mean").sum() == 12


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--coverage=.1,.2"], "--coverage"),
        (["--coverage=uselis:3:1,4"], "--region"),
        (["--grid=region=none,corner:4"], "--grid"),
    ],
)
def test_mistakes_write_nothing(
    data: None,
    flags: list[str],
    word: str,
) -> None:
    with pytest.raises(ConfigError, match=word):
        sweep.main([*COMMAND, *flags])
    assert not FOLDER.exists()


def test_flags_repeat_the_sweep(
    data: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep_run, "MAX_DRAWN", 0)  # figures are slow
    sweep.main([*COMMAND, "--coverage=random:.6,.85"])
    table = (FOLDER / "trials.csv").read_bytes()

    sweep.main(["sweep", f"--flagfile={FOLDER}/sweep.flags"])

    assert (FOLDER / "trials.csv").read_bytes() == table
