"""Real trials on real workers: 2 x 2 tiny trainings."""

import contextlib
import csv
import hashlib
import itertools
import json
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from random import Random

import psutil
import pytest

NUM_TRIALS = 4
NUM_KILLS = 10
TINY = ("--width=8", "--epochs=3", "--steps_per_epoch=5", "--eval_every=1")


def make_command(folder: Path, *flags: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tfcomp.sweep",
        "--flagfile=sweep_smoke.flags",
        f"--log_dir={folder / 'logs'}",
        f"--export_dir={folder / 'models'}",
        "--workers=2",
        *TINY,
        *flags,
    ]


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_sweep(tmp_path: Path) -> None:
    command = make_command(tmp_path, "--measure")
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    sweep = tmp_path / "logs" / "sweep_smoke"
    rows = read(sweep / "trials.csv")
    assert [row["status"] for row in rows] == ["finished"] * NUM_TRIALS
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
        assert [r["epoch"] for r in read(folder / "history.csv")] == list("123")
    assert len({row["id_mse"] for row in rows}) == NUM_TRIALS
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


def hash_trials(folder: Path) -> dict[str, str]:
    """Hashes of the weights of all trials."""
    found = {}
    for path in folder.glob("logs/sweep_smoke/trials/*/model.keras"):
        with zipfile.ZipFile(path) as archive:
            content = archive.read("model.weights.h5")
        found[path.parent.name] = hashlib.sha256(content).hexdigest()
    return found


def kill_one(process: psutil.Popen, chance: Random) -> list[psutil.Process]:
    """Kills a command or one of its workers; returns all its processes."""
    family = []
    with contextlib.suppress(psutil.Error):  # it ends just now
        family = process.children(recursive=True)
        workers = [p for p in family if "spawn_main" in " ".join(p.cmdline())]
        victim = chance.choice([process, *workers])
        is_told = victim is process and chance.random() < 0.5
        victim.send_signal(signal.SIGTERM if is_told else signal.SIGKILL)
    return family


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_random_kills(tmp_path: Path) -> None:
    """The same bits, whatever dies and goes on; no process is left."""
    flags = ["--model=mlp", "--epochs=100", "--eval_every=0"]
    flags.append("--checkpoint_seconds=0")
    start = time.monotonic()
    subprocess.run(make_command(tmp_path / "whole", *flags), check=True)
    longest = (time.monotonic() - start) / 2
    expected, chance, kills = hash_trials(tmp_path / "whole"), Random(0), 0
    for number in itertools.count(1):
        folder, status = tmp_path / str(number), -1
        while status:
            process = psutil.Popen(make_command(folder, *flags))
            family: list[psutil.Process] = []
            while kills < NUM_KILLS and process.poll() is None:
                time.sleep(chance.uniform(0, longest))
                family += kill_one(process, chance)
                kills += 1
            status = process.wait()
            assert not psutil.wait_procs(family, timeout=60)[1]
        assert hash_trials(folder) == expected
        print(f"{kills} kills, {number} sweeps: equal")
        if kills >= NUM_KILLS:
            return
