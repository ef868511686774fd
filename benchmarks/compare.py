"""Speed of two checkouts, in turns: `python -m benchmarks.compare OLD NEW`.

    git worktree add ../before HEAD~50
    python -m benchmarks.compare ../before .

Prints the median time of several rounds in each checkout, and their ratio: of a
training step of the donut and of the low-rank network, of the whole command
`tfcomp train smoke`, and of the analysis of a donut run. Both checkouts run in
this Python, one after the other in each round, so that other work on the
machine slows both alike.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

EPOCHS = (1, 6)  # the first one traces the network
QUICK = ("--eval_every=0", "--layerwise_every=0", "--nopictures")
Job = Callable[[Path, Path], float]  # of a checkout and a folder: seconds


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
    )
    parser.add_argument("--jobs", default=",".join(JOBS))
    options = parser.parse_args()

    print(f"{'':16}{'old':>10}{'new':>10}{'new/old':>10}")
    for name in options.jobs.split(","):
        times: dict[Path, list[float]] = {options.old: [], options.new: []}
        for _ in range(options.rounds):
            for checkout, seconds in times.items():
                with tempfile.TemporaryDirectory() as folder:
                    job = JOBS[name]
                    seconds.append(job(checkout.resolve(), Path(folder)))
        old, new = map(statistics.median, times.values())
        print(f"{name:16}{old:9.4f}s{new:9.4f}s{new / old:10.2f}", flush=True)


def run(checkout: Path, folder: Path, module: str, *flags: str) -> float:
    """Runs a command of a checkout in a folder; returns its seconds.

    Args:
        checkout: The root of a clone.
        folder: The working directory.
        module: As `tfcomp.train`.
        *flags: Of the command.
    """
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", module, *flags],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def time_step(name: str, num_steps: int, checkout: Path, folder: Path) -> float:
    """Trains a shipped flagfile twice; returns the seconds of a step.

    Args:
        name: Of the flagfile.
        num_steps: Of an epoch.
        checkout: The root of a clone.
        folder: The working directory.
    """
    seconds = []
    for epochs in EPOCHS:
        flags = (
            f"--flagfile={name}.flags",
            f"--run_name={epochs}",
            f"--epochs={epochs}",
            f"--steps_per_epoch={num_steps}",
        )
        run(checkout, folder, "tfcomp.train", *flags, *QUICK)
        metrics = folder / "tensorboard_logs" / str(epochs) / "metrics.json"
        seconds.append(json.loads(metrics.read_text())["train"]["seconds"])
    short, long = seconds
    return (long - short) / (EPOCHS[1] - EPOCHS[0]) / num_steps


def time_smoke(checkout: Path, folder: Path) -> float:
    """Returns the seconds of the whole command of the first try."""
    return run(checkout, folder, "tfcomp.train", "--flagfile=smoke.flags")


def time_analysis(checkout: Path, folder: Path) -> float:
    """Returns the seconds of the analysis of a donut run."""
    flags = ("--flagfile=donut.flags", "--epochs=1", "--steps_per_epoch=1")
    run(checkout, folder, "tfcomp.train", *flags, *QUICK)
    path = "--run=tensorboard_logs/donut"
    return run(checkout, folder, "tfcomp.analyze", path)


JOBS: dict[str, Job] = {
    "donut_step": functools.partial(time_step, "donut", 40),
    "low_rank_step": functools.partial(time_step, "low_rank", 400),
    "smoke": time_smoke,
    "analyze": time_analysis,
}

if __name__ == "__main__":
    main()
