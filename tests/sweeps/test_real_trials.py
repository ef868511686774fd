"""Real trials on a real worker: a sweep, and the bits of its weights."""

import csv
import hashlib
import itertools
import json
import zipfile
from pathlib import Path

import pytest

from tfcomp import sweep
from tfcomp.sweeps.worker_task import run_trial

FLAGS = (
    "--grid=precision=float32,mixed_bfloat16 --seeds=2 --workers=1 "
    "--model=mlp --width=4 --depth=1 --epochs=3 --steps_per_epoch=5 "
    "--eval_every=1"
)
PRECISIONS = ("float32", "mixed_bfloat16")


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def hash_weights(run: Path) -> str:
    with zipfile.ZipFile(run / "model.keras") as archive:
        content = archive.read("model.weights.h5")
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep, whose trials one process has run in turn."""
    folder = tmp_path_factory.mktemp("sweep")
    places = f"--log_dir={folder}/logs", f"--export_dir={folder}/models"
    flags = ["smoke", "--run_name=s", *places, *FLAGS.split()]
    assert sweep.main(["sweep", *flags]) == 0
    return folder / "logs" / "s"


def test_tables_and_figures(folder: Path) -> None:
    rows = read(folder / "trials.csv")
    assert [row["status"] for row in rows] == ["finished"] * 4
    for row in rows:
        trial = folder / "trials" / row["trial"]
        metrics = json.loads((trial / "metrics.json").read_text())
        assert float(row["ood_mse"]) == metrics["ood"]["mse"]
        # No pictures, but the curves that the figures are made of.
        (events,) = trial.glob("events.out.tfevents.*")
        assert b"ood/mse" in events.read_bytes()
        assert b"answer/samples_ood" not in events.read_bytes()
        assert [r["epoch"] for r in read(trial / "history.csv")] == list("123")
    assert len({row["id_mse"] for row in rows}) == 4
    for name in ("epoch_train_loss", "stage_probe_r2_ood", "scores"):
        for ending in ("png", "pdf", "csv"):
            assert (folder / "figures" / f"{name}.{ending}").exists()
    losses = read(folder / "figures" / "epoch_train_loss.csv")
    points = [(row["line"], row["x"]) for row in losses]
    lines = [f"precision {precision}" for precision in PRECISIONS]
    assert points == list(itertools.product(lines, "123"))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_trial_has_the_bits_of_a_run_by_itself(
    precision: str, folder: Path, tmp_path: Path
) -> None:
    """After another precision, and with what another seed has traced."""
    (name,) = (
        row["trial"]
        for row in read(folder / "trials.csv")
        if (row["precision"], row["seed"]) == (precision, "1")
    )
    flags = [f"--flagfile={folder / 'trials' / name / 'run.flags'}"]
    flags += [f"--log_dir={tmp_path}", f"--export_dir={tmp_path / 'models'}"]
    run_trial(["trial", *flags, "--export=false"])
    assert hash_weights(tmp_path / name) == hash_weights(
        folder / "trials" / name
    )
