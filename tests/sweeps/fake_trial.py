"""Stands for a trial: sleeps, then writes scores that follow from its flags.

Like a real one it goes on where it stopped (`progress`), and it leaves a line
in `starts.txt` for every start.
"""

import json
import os
import signal
import time
import zipfile
from pathlib import Path

from tfcomp.config.errors import DivergedError
from tfcomp.config.process import check_stop

STEPS = 4
DEADLY = "deadly"  # names, beside the sweep, the depth that kills its worker


def write(file: Path, text: str):
    """Writes it whole or not at all: tests kill this at any moment."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(file)


def run_trial(argv: list[str]):
    lines = [argument for argument in argv[1:] if "=" in argument]
    flags = {}
    for line in lines:
        name, _, value = line.removeprefix("--").partition("=")
        flags[name] = value
    folder = Path(flags["log_dir"], flags["run_name"])
    folder.mkdir(parents=True, exist_ok=True)
    sweep = folder.parents[1]
    with open(sweep / "starts.txt", "a") as starts:
        starts.write(f"{os.getpid()} {flags['depth']} {flags['seed']}\n")
    print("training", flush=True)

    if flags["depth"] == os.environ.get("FAKE_FAILURE"):
        raise DivergedError("the loss is not finite")
    deadly = sweep.parent / DEADLY
    if deadly.exists() and flags["depth"] == deadly.read_text():
        os.kill(os.getpid(), signal.SIGKILL)
    train(folder / "progress")

    metrics = make_metrics(int(flags["depth"]), int(flags["seed"]))
    zipfile.ZipFile(folder / "model.keras", "w").close()
    write(folder / "run.flags", "\n".join([*lines, ""]))
    write(folder / "metrics.json", json.dumps(metrics))


def make_metrics(depth: int, seed: int) -> dict[str, dict]:
    error = 1 / (1 + depth) + 0.01 * seed * depth
    return {
        "id": {"mse": error / 10, "relative_mse": error},
        "ood": {"mse": error, "hit_rate": 0.5},
        "layers": {},
        "train": {"epochs": 1, "seconds": time.time()},
    }


def train(progress: Path):
    """Takes the steps that are not done."""
    seconds = float(os.environ.get("FAKE_SECONDS", "0"))
    done = 0
    if progress.exists():
        done = int(progress.read_text())
    for step in range(done, STEPS):
        time.sleep(seconds / STEPS)
        write(progress, str(step + 1))
        check_stop()
