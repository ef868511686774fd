"""Real trials on real workers: a sweep, and the bits of its weights."""

import csv
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import Task, run_trial
from tfcomp.sweeps.workload import open_pool

PROGRAM = [sys.executable, "-m", "tfcomp.sweep", "smoke", "--run_name=s"]
SWEEP = (
    "--grid=depth=2,3 --seeds=2 --workers=2 --measure --model=mlp --width=8 "
    "--epochs=3 --eval_every=1"
)
COMMON = (
    "--flagfile=smoke.flags --epochs=2 --steps_per_epoch=5 --width=8 "
    "--layerwise_every=0 --eval_every=0 --pictures=false --export=false"
).split()
KINDS = {
    "first": ["--seed=1"],
    "other": ["--model=mlp", "--precision=mixed_bfloat16", "--seed=2"],
    "again": ["--seed=1"],  # after another model, precision and seed
    "next": ["--seed=3"],  # takes over what is traced
}


def hash_weights(run: Path) -> str:
    with zipfile.ZipFile(run / "model.keras") as archive:
        content = archive.read("model.weights.h5")
    return hashlib.sha256(content).hexdigest()


@pytest.mark.timeout(600)
def test_trials_one_after_another(tmp_path: Path) -> None:
    tasks = [
        Task(
            name,
            run_trial,
            [*COMMON, *flags, f"--log_dir={tmp_path}", f"--run_name={name}"],
            tmp_path / f"{name}.log",
            max_threads=1,
        )
        for name, flags in KINDS.items()
    ]
    with open_pool(SchedulerOptions(workers=1)) as pool:
        assert [o.reason for o in pool.run(tasks)] == [""] * len(KINDS)
    found = {name: hash_weights(tmp_path / name) for name in KINDS}
    folder = tmp_path / "alone"
    flags = [*KINDS["next"], f"--log_dir={folder}", "--run_name=next"]
    command = [sys.executable, "-m", "tfcomp.train", *COMMON]
    subprocess.run([*command, *flags], check=True)
    assert found["next"] == hash_weights(folder / "next")
    assert found["again"] == found["first"]
    assert len(set(found.values())) == 3


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_sweep(tmp_path: Path) -> None:
    places = f"--log_dir={tmp_path}/logs", f"--export_dir={tmp_path}/models"
    command = [*PROGRAM, *places, *SWEEP.split()]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    sweep = tmp_path / "logs" / "s"
    rows = read(sweep / "trials.csv")
    assert [row["status"] for row in rows] == ["finished"] * 4
    for row in rows:
        folder = sweep / "trials" / row["trial"]
        metrics = json.loads((folder / "metrics.json").read_text())
        assert float(row["ood_mse"]) == metrics["ood"]["mse"]
        measured = metrics["measures"]["no_peak_ood"]
        assert float(row["no_peak_ood"]) == measured
        # No pictures, but the curves that the figures are made of.
        (events,) = folder.glob("events.out.tfevents.*")
        assert b"ood/mse" in events.read_bytes()
        assert b"answer/samples_ood" not in events.read_bytes()
        # TensorBoard would show the columns of any trial.
        assert b"_hparams_/experiment" not in events.read_bytes()
        assert [r["epoch"] for r in read(folder / "history.csv")] == list("123")
    assert len({row["id_mse"] for row in rows}) == 4
    for name in ("curves", "layers", "scores"):
        for ending in ("png", "pdf", "csv"):
            assert (sweep / "figures" / f"{name}.{ending}").stat().st_size
    losses = [
        row
        for row in read(sweep / "figures" / "curves.csv")
        if row["quantity"] == "train/loss"
    ]
    assert [(r["depth"], r["epoch"], r["n"]) for r in losses] == [
        (depth, epoch, "2") for depth in "23" for epoch in "123"
    ]
