"""Trials of a worker have the bits of `tfcomp train` with the same flags."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task
from tfcomp.sweeps.worker_task import run_trial

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
    with Pool(SchedulerOptions(workers=1)) as pool:
        assert [o.reason for o in pool.run(tasks)] == [""] * len(KINDS)
    found = {name: hash_weights(tmp_path / name) for name in KINDS}
    folder = tmp_path / "alone"
    flags = [*KINDS["next"], f"--log_dir={folder}", "--run_name=next"]
    command = [sys.executable, "-m", "tfcomp.train", *COMMON]
    subprocess.run([*command, *flags], check=True)
    assert found["next"] == hash_weights(folder / "next")
    assert found["again"] == found["first"]
    assert len(set(found.values())) == 3
