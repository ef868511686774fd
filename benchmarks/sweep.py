"""What a sweep costs beside its trainings, and what a second worker brings.

    python -m benchmarks.sweep [--trials=30] [--flagfile=smoke.flags]

1. Overhead: commands that sleep, through the scheduler. What a command costs
   beyond its sleep is given as a share of a trial of one minute, without and
   with the start of the cluster (once a sweep). Goal: below 5 %.
2. Sweeps of the same trials, each pinned to one thread: one worker with a
   process for each trial (`--isolate`), one worker with a warm process, and
   two workers. Their time is given over the sum of the trainings alone, and
   as trials per hour. Goals: at least 3 times the trials of isolated ones; two
   workers on two cores at least 1.7 times those of one. Other work on the
   machine spoils these numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import tempfile
import time
from pathlib import Path

from tfcomp.config.run_flags import parse_flags
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task
from tfcomp.sweeps.sweep_run import define_flags, make_sweep
from tfcomp.sweeps.workload import run_missing

MINUTE, HOUR = 60.0, 3600.0


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


def measure_sweep(
    flags: list[str], trials: int, workers: int, isolate: bool
) -> tuple[float, float]:
    """Seconds of a sweep, and of the training steps of all its trials."""
    with tempfile.TemporaryDirectory() as folder:
        places = [f"--log_dir={folder}", f"--export_dir={folder}/models"]
        arguments = [*flags, *places, f"--seeds={trials}", "--run_name=sweep"]
        sweep = make_sweep(parse_flags(arguments, define_flags()))
        options = SchedulerOptions(workers=workers, threads=1, isolate=isolate)
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            failures = run_missing(sweep, options)
        seconds = time.perf_counter() - start
        with open(sweep.folder / "timings.csv", newline="") as file:
            trained = sum(float(row["seconds"]) for row in csv.DictReader(file))
    assert not failures, failures
    return seconds, trained


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--flagfile", default="smoke.flags")
    arguments, flags = parser.parse_known_args()
    flags = [f"--flagfile={arguments.flagfile}", *flags]

    cluster, each = measure_overhead(6, 5.0)
    print(f"start and end of the cluster: {cluster:.2f} s, once a sweep")
    print(f"overhead of a command: {each:.3f} s")
    for count in (1, 30):
        share = (each + cluster / count) / MINUTE
        print(f"  of one minute, sweep of {count} trials: {share:.2%}")

    cases = {
        "one worker, isolated": (1, True),
        "one worker": (1, False),
        "two workers": (2, False),
    }
    for name, (workers, isolate) in cases.items():
        trials = arguments.trials
        seconds, trained = measure_sweep(flags, trials, workers, isolate)
        hourly = trials / seconds * HOUR
        print(
            f"{trials} trials, {name}: {seconds:.1f} s, "
            f"{seconds / trained:.2f} times their trainings, "
            f"{hourly:.0f} trials an hour"
        )


if __name__ == "__main__":
    main()
