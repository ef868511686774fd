"""Real trials on real workers: 2 x 2 tiny trainings."""

import csv
import json
import subprocess
import sys
from pathlib import Path

NUM_TRIALS = 4
TINY = ("--model=mlp", "--width=8", "--epochs=3", "--eval_every=1")


def make_command(folder: Path, *flags: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tfcomp.sweep",
        "smoke",
        "--run_name=s",
        "--grid=depth=2,3",
        "--seeds=2",
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
    sweep = tmp_path / "logs" / "s"
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
