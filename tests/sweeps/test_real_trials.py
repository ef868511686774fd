"""Real trials: the tables of a sweep, and the bits of its weights."""

import csv
import json
import zipfile
from pathlib import Path

import pytest

from tests.sweeps.fake_sweep import use_pool
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.worker_task import run_trial

LINE = (
    "smoke --run_name=s --grid=precision=float32,mixed_bfloat16 --seeds=2 "
    "--workers=1 --model=mlp --width=4 --depth=1 --epochs=2 "
    "--grid_size=8 --region=square:3-4 "
    "--steps_per_epoch=5 --eval_every=1 --layerwise_every=0 --noexport"
)


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read_weights(run: Path) -> bytes:
    with zipfile.ZipFile(run / "model.keras") as archive:
        return archive.read("model.weights.h5")


@pytest.fixture(
    scope="module",
    params=["here", pytest.param("worker", marks=pytest.mark.slow)],
)
def folder(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of a sweep, whose trials one process has run in turn."""
    folder = tmp_path_factory.mktemp("sweep")
    places = (f"--log_dir={folder}/logs", f"--export_dir={folder}/models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_run, "MAX_DRAWN", 0)  # figures are slow
        if request.param == "here":
            use_pool(patch, PoolHere())
        assert sweep.main(["sweep", *LINE.split(), *places]) == 0
    return folder / "logs" / "s"


def test_tables_of_trials(folder: Path):
    rows = read(folder / "trials.csv")

    assert [row["status"] for row in rows] == ["finished"] * 4
    assert len({row["id_mse"] for row in rows}) == 4
    for row in rows:
        trial = folder / "trials" / row["trial"]
        metrics = json.loads((trial / "metrics.json").read_text())
        assert float(row["ood_mse"]) == metrics["ood"]["mse"]
        epochs = [epoch["epoch"] for epoch in read(trial / "history.csv")]
        assert epochs == ["1", "2"]
        # No pictures, but the curves that the figures are made of.
        (events,) = trial.glob("events.out.tfevents.*")
        content = events.read_bytes()
        assert b"ood/mse" in content
        assert b"answer/samples_ood" not in content


def test_a_trial_has_the_bits_of_a_run_by_itself(
    folder: Path,
    tmp_path: Path,
):
    """After another precision, and with what another seed has traced."""
    trial = read(folder / "trials.csv")[-1]
    assert trial["precision"] == "mixed_bfloat16"
    assert trial["seed"] == "1"
    path = folder / "trials" / trial["trial"]

    flags = [f"--flagfile={path}/run.flags", f"--log_dir={tmp_path}"]
    run_trial(["trial", *flags])

    assert read_weights(tmp_path / path.name) == read_weights(path)
