"""What a sweep of thousands of trials costs, half of which are finished.

    python -m benchmarks.sweep_scale [--sizes=1000,10000] [--trial=RUN]

trains one network of `smoke.flags` (or takes the finished RUN), and makes of
it, for each size, a sweep of a hundred settings whose first half is finished:
copies of its files, with the flags and the name of each trial, and scores that
differ. Nothing else is trained. Each size is a process of its own, which

1. plans the sweep and looks for what is finished,
2. goes on: the rest ends one after the other, as soon as the sweep looks (its
   files are copies, too), so that all that it takes is the sweep's own work,
3. writes tables, statistics and figures,
4. is started once more, when nothing is left to do.

It prints seconds of processor, which other work on the machine changes less
than those of the clock, and the peak of memory.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfcomp.config.run_flags import format_flags, parse_flags
from tfcomp.sweeps import workload
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Outcome, Task
from tfcomp.sweeps.sweep_run import Sweep, define_flags, make_sweep

SETTINGS = 100
LINKED = ("model.keras", "history.csv")


def main() -> None:
    """Measures each size in a process of its own, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--trial", default="")
    parser.add_argument("--folder", default="", help="of one size, inside")
    options = parser.parse_args()
    if options.folder:
        measure(int(options.sizes), Path(options.folder), Path(options.trial))
        return
    with tempfile.TemporaryDirectory() as place:
        trial = options.trial or train(Path(place))
        for size in options.sizes.split(","):
            flags = [f"--sizes={size}", f"--trial={trial}"]
            flags.append(f"--folder={place}/{size}")
            command = [sys.executable, "-m", "benchmarks.sweep_scale", *flags]
            subprocess.run(command, check=True)


def train(folder: Path) -> Path:
    """The run that all trials are copies of."""
    command = [sys.executable, "-m", "tfcomp", "train", "smoke"]
    places = [f"--log_dir={folder}", f"--export_dir={folder}/models"]
    flags = ["--noexport", "--nopictures"]
    subprocess.run([*command, *places, *flags], check=True, capture_output=True)
    return folder / "smoke"


def measure(size: int, folder: Path, trial: Path) -> None:
    """One size; prints what each part takes."""
    metrics = json.loads((trial / "metrics.json").read_text())
    print(f"{size} trials", flush=True)
    with report("plan", size):
        sweep = plan(size, folder)
    for item in sweep.items[: size // 2]:
        finish(item, trial, metrics)
    with report("look for what is finished", size):
        assert len(sweep.list_missing()) == size - size // 2
    reports, sweep_class = Sweep.write_reports, Sweep
    sweep_class.write_reports = lambda self: None
    workload.Pool = lambda *_: CopyingPool(sweep.items, trial, metrics)
    with report("go on, until all have ended", size - size // 2):
        go_on(sweep)
    sweep_class.write_reports = reports
    with report("statistics and figures", size):
        sweep.write_reports()
    with report("start again, nothing is left", size):
        go_on(plan(size, folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"  {'peak of memory':32} {peak:9} MB", flush=True)


def plan(size: int, folder: Path) -> Sweep:
    """A sweep of a hundred settings that share their seeds."""
    decays = ",".join(f"{k / 1000}" for k in range(SETTINGS))
    flags = ["--flagfile=smoke.flags", "--run_name=sweep"]
    flags += [f"--log_dir={folder}", f"--export_dir={folder}/models"]
    flags += [f"--grid=weight_decay={decays}", f"--seeds={size // SETTINGS}"]
    return make_sweep(parse_flags(flags, define_flags()))


def finish(item: Trial, trial: Path, metrics: dict) -> None:
    """Makes the files of a finished trial of those of the real one."""
    item.path.mkdir(parents=True)
    (item.path / "run.flags").write_text(format_flags(item.config))
    for name in LINKED:
        os.link(trial / name, item.path / name)
    source = random.Random(item.name)
    scores = {
        subset: {
            name: value and value * source.uniform(0.5, 1.0)
            for name, value in metrics[subset].items()
        }
        for subset in ("id", "ood")
    }
    (item.path / "metrics.json").write_text(json.dumps(metrics | scores))


def go_on(sweep: Sweep) -> None:
    """Runs what is missing, in silence."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert not workload.run_missing(sweep, SchedulerOptions())


class CopyingPool(contextlib.AbstractContextManager):
    """In place of workers: each trial is finished when it is asked for."""

    workers = 1

    def __init__(
        self, items: Sequence[Trial], trial: Path, metrics: dict
    ) -> None:
        self._items = {item.name: item for item in items}
        self._finished = trial, metrics

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Ends the tasks one after the other."""
        for task in tasks:
            finish(self._items[task.name], *self._finished)
            yield Outcome(task.name, 0, "", 0.0)

    def close(self) -> None:
        """Has no workers to end."""

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextlib.contextmanager
def report(what: str, count: int) -> Iterator[None]:
    """Prints what a block takes, in all and for each of so many trials."""
    start, clock = time.process_time(), time.perf_counter()
    yield
    seconds = time.process_time() - start
    clock = time.perf_counter() - clock
    print(
        f"  {what:32} {seconds:9.2f} s {1000 * seconds / count:9.2f} ms a trial"
        f"  ({clock:.1f} s by the clock)",
        flush=True,
    )


if __name__ == "__main__":
    main()
