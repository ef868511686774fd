"""The worker of Dask in a job of a cluster.

    python -m tfcomp.sweeps.job_worker SCHEDULER --name=NAME --trials=2 ...

dask-jobqueue writes this line into the script of a job. Unlike `dask worker`,
one which is told to end, at its time limit or by its cluster, first stops its
trials and hands them back, for the next job to resume. Its files are in a
private folder of the node, and its keys in one that all nodes share.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import dask
from distributed import Security, Status, Worker

from tfcomp.config.private_folder import use_private_folder
from tfcomp.sweeps.local_cluster import SETTINGS

# What clusters send before they kill, some of them minutes ahead.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
_LEAVE_SECONDS = 10


def main(argv: list[str]) -> int:
    """Works until the scheduler or a signal says that it is over."""
    options = parse(argv[1:])
    if not wait_for_keys(Path(options.tls_key), options.death_timeout):
        print("the command that has submitted this job has ended")
        return 0
    logging.getLogger("distributed").setLevel(logging.WARNING)
    if options.local_directory:
        os.environ["TMPDIR"] = options.local_directory
    with use_private_folder():
        folder = tempfile.gettempdir()
        dask.config.set(SETTINGS | {"temporary-directory": folder})
        try:
            asyncio.run(work(options))
        except (OSError, TimeoutError) as error:
            print(f"no connection to {options.scheduler}: {error}")
            return 1
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; what else dask-jobqueue says holds for its own worker."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("scheduler")
    parser.add_argument("--name", required=True)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--interface")
    parser.add_argument("--local-directory")
    parser.add_argument("--death-timeout", type=float, default=60.0)
    for name in ("ca-file", "cert", "key"):
        parser.add_argument(f"--tls-{name}", required=True)
    return parser.parse_known_args(arguments)[0]


def wait_for_keys(path: Path, seconds: float) -> bool:
    """Whether a file is there; a node may see a new one some time later."""
    end = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < end:
        time.sleep(1)
    return path.exists()


async def work(options: argparse.Namespace) -> None:
    """Runs the worker until it is closed; OSError without a scheduler."""
    worker = Worker(
        options.scheduler,
        name=options.name,
        nthreads=options.trials,
        memory_limit=0,  # it would count the worker, not its trials
        interface=options.interface,
        death_timeout=options.death_timeout,
        dashboard=False,
        security=Security(
            tls_ca_file=options.tls_ca_file,
            tls_worker_cert=options.tls_cert,
            tls_worker_key=options.tls_key,
            require_encryption=True,
        ),
    )
    tasks = []
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(
            number, lambda: tasks.append(asyncio.create_task(leave(worker)))
        )
    await worker
    await worker.finished()


async def leave(worker: Worker) -> None:
    """Stops the trials, hands them back, and ends the worker."""
    if worker.status not in (Status.running, Status.paused):
        return await worker.close()
    worker.status = Status.closing_gracefully  # the scheduler sends no more
    end = asyncio.get_running_loop().time() + _LEAVE_SECONDS
    while worker.state.executing_count:
        if asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(0.1)
    await worker.close(reason="told to end", executor_wait=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
