"""What a sweep costs, and what a second worker brings.

    python -m benchmarks.sweep [--trials=6] [--seconds=5] [--epochs=40]

1. Overhead: commands that sleep, through the scheduler. What a command costs
   beyond its sleep is given as a share of a trial of one minute, without and
   with the start of the cluster (once a sweep). Goal: below 5 %.
2. Throughput: low-rank trials, each pinned to one thread, with one worker and
   with two. Goal on two cores: at least 1.6 times the trials per hour. Other
   work on the machine spoils this number.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool
from tfcomp.sweeps.scheduling import Task

MINUTE = 60.0
FLAGS = (
    "--flagfile=low_rank.flags",
    "--eval_every=0",
    "--layerwise_every=0",
    "--pictures=false",
)


def measure_overhead(trials: int, seconds: float) -> tuple[float, float]:
    """Seconds to start and stop a cluster, and beyond the sleep per task."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = [
            Task(f"t{i}", ["sleep", str(seconds)], Path(folder, f"{i}.log"))
            for i in range(trials)
        ]
        start = time.perf_counter()
        with Pool(SchedulerOptions(workers=1)) as pool:
            ready = time.perf_counter()
            failed = [o for o in pool.run(tasks) if o.returncode]
            done = time.perf_counter()
        end = time.perf_counter()
    assert not failed, failed
    cluster = (ready - start) + (end - done)
    return cluster, (done - ready) / trials - seconds


def measure_throughput(workers: int, trials: int, epochs: int) -> float:
    """Seconds for some low-rank trials of one thread each."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = [
            make_trial(Path(folder), seed, epochs) for seed in range(trials)
        ]
        options = SchedulerOptions(workers=workers, threads=1)
        start = time.perf_counter()
        with Pool(options) as pool:
            failed = [o for o in pool.run(tasks) if o.returncode]
        seconds = time.perf_counter() - start
    assert not failed, failed
    return seconds


def make_trial(folder: Path, seed: int, epochs: int) -> Task:
    """A training of the low-rank network as a task."""
    flags = (
        *FLAGS,
        f"--epochs={epochs}",
        f"--seed={seed}",
        f"--run_name=t{seed}",
        f"--log_dir={folder}",
        f"--export_dir={folder / 'models'}",
    )
    command = [sys.executable, "-m", "tfcomp.sweeps.one_trial", *flags]
    return Task(f"t{seed}", command, folder / f"{seed}.log")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    trials = arguments.trials

    cluster, each = measure_overhead(trials, arguments.seconds)
    print(f"start and end of the cluster: {cluster:.2f} s, once a sweep")
    print(f"overhead of a trial: {each:.3f} s")
    for count in (1, 30):
        share = (each + cluster / count) / MINUTE
        print(f"  of one minute, sweep of {count} trials: {share:.2%}")

    one = measure_throughput(1, trials, arguments.epochs)
    two = measure_throughput(2, trials, arguments.epochs)
    print(f"{trials} low-rank trials, one worker:  {one:.1f} s")
    print(f"{trials} low-rank trials, two workers: {two:.1f} s")
    print(f"throughput: {one / two:.2f} times")


if __name__ == "__main__":
    main()
