"""Time and memory of commands: `python -m benchmarks.compare [CHECKOUT ...]`.

    git worktree add ../before HEAD~50
    python -m benchmarks.compare ../before . --jobs=smoke,analyze --rounds=5

Prints processor seconds, seconds and peak memory of commands in each checkout
(by default this one), of the round with the least processor seconds, and the
ratio of these to the first checkout. All run in this Python and take turns, so
that other work on the machine slows them alike. Machines differ less in ratios
to the job `import`.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

QUICK = "--eval_every=0 --layerwise_every=0 --nopictures"
TRAIN_DONUT = f"-m tfcomp train donut --epochs=1 --steps_per_epoch=1 {QUICK}"
# The last command of each job is measured.
JOBS = {
    "import": ["-c 'import tensorflow, keras'"],
    "smoke": ["-m tfcomp train smoke"],
    "solvable": ["-m tfcomp solvable smoke"],
    "analyze_smoke": [
        "-m tfcomp train smoke",
        "-m tfcomp analyze tensorboard_logs/smoke",
    ],
    "first_step": [TRAIN_DONUT],
    "analyze": [TRAIN_DONUT, "-m tfcomp analyze tensorboard_logs/donut"],
}


class Cost(NamedTuple):
    """What a command took, with its children: seconds, and gigabytes."""

    processor: float
    seconds: float
    memory: float


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "checkouts",
        nargs="*",
        type=Path,
        default=[Path()],
    )
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument(
        "--rounds",
        type=int,
        default=1,
    )
    options = parser.parse_args()

    for name in options.jobs.split(","):
        least: dict[Path, Cost] = {}
        for _ in range(options.rounds):
            for path in options.checkouts:
                cost = run_job(path, JOBS[name])
                least[path] = min(cost, least.get(path, cost))

        first = least[options.checkouts[0]]
        for path, cost in least.items():
            ratio = cost.processor / first.processor
            print(
                f"{name:14} {str(path):24} {cost.processor:7.1f} s of "
                f"processor {cost.seconds:7.1f} s {cost.memory:6.2f} GB "
                f"{ratio:6.2f}",
                flush=True,
            )


def run_job(checkout: Path, commands: list[str]) -> Cost:
    """Runs commands in an empty folder; returns what the last one took.

    Args:
        checkout: The root of a clone.
        commands: Arguments of Python.
    """
    with tempfile.TemporaryDirectory() as folder:
        costs = [run(checkout, command, folder) for command in commands]
    return costs[-1]


def run(checkout: Path, command: str, folder: str) -> Cost:
    """Runs a command, without files of the user's home.

    Args:
        checkout: The root of a clone.
        command: Arguments of Python.
        folder: The working directory, and the home.

    Raises:
        RuntimeError: If it fails.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout.resolve()),
        "HOME": folder,
    }
    start = time.perf_counter()
    arguments = shlex.split(command)
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{checkout}: python {command} has failed")

    num_bytes = 1024 * usage.ru_maxrss
    return Cost(
        processor=usage.ru_utime + usage.ru_stime,
        seconds=seconds,
        memory=num_bytes / 1e9,
    )


if __name__ == "__main__":
    main()
