"""Which layer of processes keeps what sweeps promise: ours, loky, or Dask's.

    pip install loky
    python -m benchmarks.process_layers

A trial trains for minutes inside of C++ code, on a machine where anything may
be killed. Each layer runs the same tasks, and a table says of each

- whether trials end when the process that started the sweep is killed,
- whether others go on when one crashes, and the reason names the signal,
- whether one that is cancelled ends within three seconds.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tfcomp.statistics.setting_table import format_rows

NAME = "benchmarks.process_layers"
LAYERS = ("ours", "loky", "dask")
PATIENCE = 90.0  # seconds, for a start on a busy machine
GRACE = 3.0


def work(kind: str, file: str) -> int:
    """A task: leaves its process id, then hangs, crashes or ends."""
    Path(file).write_text(str(os.getpid()))
    if kind == "crash":
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(600 if kind == "hang" else 4)
    return 0


def run_ours(kinds: list[str], folder: Path, cancel: bool) -> dict[str, str]:
    """Our pool of warm processes."""
    from tfcomp.sweeps.scheduler_options import SchedulerOptions
    from tfcomp.sweeps.scheduling import Pool, Task

    tasks = [
        Task(
            kind,
            [sys.executable, "-m", NAME, kind, str(folder / kind)],
            folder / f"{kind}.log",
            setup="",
        )
        for kind in kinds
    ]
    with Pool(SchedulerOptions(workers=2)) as pool:
        outcomes = pool.run(tasks)
        if cancel:
            stop = functools.partial(os.kill, os.getpid(), signal.SIGINT)
            arguments = (folder, stop)
            threading.Thread(target=cancel_started, args=arguments).start()
            with contextlib.suppress(KeyboardInterrupt):
                next(outcomes)
            time.sleep(2 * GRACE)
            return {}
        return {o.name: o.reason or "finished" for o in outcomes}


def run_loky(kinds: list[str], folder: Path, cancel: bool) -> dict[str, str]:
    """Executors of loky, which survive the death of a worker."""
    from loky import get_reusable_executor

    executor = get_reusable_executor(max_workers=2)
    futures = {k: executor.submit(work, k, str(folder / k)) for k in kinds}
    if cancel:
        cancel_started(folder, futures["hang"].cancel)
        return {}
    return {kind: describe(f.result) for kind, f in futures.items()}


def run_dask(kinds: list[str], folder: Path, cancel: bool) -> dict[str, str]:
    """Tasks inside of Dask's workers, which a nanny starts again."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        futures = {
            k: client.submit(work, k, str(folder / k), pure=False)
            for k in kinds
        }
        if cancel:
            future = futures["hang"]
            cancel_started(folder, lambda: future.cancel(force=True))
            return {}
        return {kind: describe(f.result) for kind, f in futures.items()}


def describe(result: Callable[[], object]) -> str:
    """What a future says of its end."""
    try:
        result()
    except Exception as error:
        names = [s.name for s in signal.Signals if s.name in str(error)]
        return f"{type(error).__name__}, names {names}"
    return "finished"


def cancel_started(folder: Path, cancel: Callable) -> None:
    """Cancels the task that hangs; notes whether it has ended soon after."""
    number = wait_for(folder / "hang")
    cancel()
    time.sleep(GRACE)
    (folder / "cancelled").write_text(str(not psutil.pid_exists(number)))


def wait_for(file: Path) -> int:
    """The process id in a file, once it is there."""
    end = time.monotonic() + PATIENCE
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < end, f"{file} was waited for in vain"
        time.sleep(0.05)
    return int(file.read_text())


def is_left(layer: str) -> bool:
    """Whether a trial outlives the process that started the sweep."""
    with tempfile.TemporaryDirectory() as place:
        process = start(layer, "main", Path(place))
        number = wait_for(Path(place, "hang"))
        process.kill()
        process.wait()
        time.sleep(GRACE)
        left = psutil.pid_exists(number)
        if left:
            psutil.Process(number).kill()
        return left


def start(layer: str, what: str, folder: Path) -> subprocess.Popen:
    """A process that runs the tasks of one question on a layer."""
    command = [sys.executable, "-m", NAME]
    return subprocess.Popen(
        [*command, layer, what, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def ask(layer: str) -> dict[str, object]:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as place:
        crash, _ = start(layer, "crash", Path(place)).communicate()
    with tempfile.TemporaryDirectory() as place:
        process = start(layer, "cancel", Path(place))
        wait_for(Path(place, "hang"))
        end = time.monotonic() + 10 * GRACE
        while not Path(place, "cancelled").exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        cancelled = Path(place, "cancelled").read_text()
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
    return {
        "layer": layer,
        "left behind": is_left(layer),
        "cancelled": cancelled,
        "when one crashes": crash.strip()[:200],
    }


def main(argv: list[str]) -> int:
    """Asks all layers, or is one of the processes that they start."""
    if len(argv) == 3:
        return work(*argv[1:])
    if len(argv) == 4:
        run = {"ours": run_ours, "loky": run_loky, "dask": run_dask}[argv[1]]
        kinds = ["crash", "other"] if argv[2] == "crash" else ["hang"]
        print(run(kinds, Path(argv[3]), argv[2] == "cancel"), flush=True)
        return 0
    rows = [ask(layer) for layer in LAYERS]
    print(format_rows([list(rows[0]), *(row.values() for row in rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
