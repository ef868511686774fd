"""A Dask cluster on this machine that keeps its number of workers.

Each worker is a process, which its nanny starts again when it dies. All speak
through TLS, since others on a shared machine could have them run code as us.
Their files are in a private folder: Dask would import modules from
`dask-scratch-space`, which somebody else may have made before.
"""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from tfcomp.config.errors import RunError
from tfcomp.config.private_folder import make_private_folder

if TYPE_CHECKING:
    from distributed import Client, LocalCluster
    from distributed.deploy import Cluster

CLOSE_SECONDS = 60
SETTINGS = {
    # Dask limits the threads of its workers and changes how they return
    # memory, which our processes would inherit.
    "distributed.nanny.pre-spawn-environ": {},
    # A task whose worker has died four times is recorded as failed.
    "distributed.scheduler.allowed-failures": 3,
    # By default a worker that has not come back after 15 s is forgotten, also
    # while it is about to start on a busy machine.
    "distributed.deploy.lost-worker-timeout": "100000 h",
    # Pages with logs and counts, which know no login.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # What Dask watches many times a second, for dashboards and tasks of
    # milliseconds, costs more than all the rest when tasks take minutes.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


@contextlib.contextmanager
def start_cluster(num_workers: int) -> Iterator[tuple[LocalCluster, Client]]:
    """A cluster of one-thread processes, and its client; or a RunError."""
    import dask
    from distributed import Client, LocalCluster

    silence_dask()
    # The settings hold as long as the cluster: Dask reads some of them only
    # when a worker is lost, or started again.
    with contextlib.ExitStack() as stack:
        # Removed when everything that writes there has ended.
        folder = str(stack.enter_context(make_private_folder()))
        settings = SETTINGS | {"temporary-directory": folder}
        stack.enter_context(dask.config.set(settings))
        with hold_back_interrupts():
            try:
                cluster = LocalCluster(
                    n_workers=num_workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,  # it would count workers, not tasks
                    dashboard_address="127.0.0.1:0",  # any free port
                    scheduler_kwargs={"dashboard": False},
                    local_directory=folder,
                    env={"TMPDIR": folder},
                    silence_logs=logging.CRITICAL,
                    security=True,
                )
            except (OSError, RuntimeError) as error:
                raise RunError(f"no worker can be started: {error}") from error
            stack.callback(close_cluster, cluster)
            client = stack.enter_context(Client(cluster))
        yield cluster, client


def silence_dask() -> None:
    """Keeps Dask's logs, mostly tracebacks of lost workers, from users.

    What `silence_logs` does ends with the cluster, while connections close.
    """
    import distributed  # noqa: F401  sets the levels as it is imported

    for name in ("", ".client", ".gc"):
        logging.getLogger(f"distributed{name}").setLevel(logging.CRITICAL)
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)


def replace_lost_workers(cluster: LocalCluster) -> None:
    """Starts workers, in the background, where nannies have given up."""
    from distributed import Status

    def replace() -> None:
        ends = (Status.closed, Status.failed)
        nannies = cluster.workers.items()
        for name in [name for name, n in nannies if n.status in ends]:
            del cluster.workers[name]
            # Starts what is missing of the number that was asked for.
            cluster.scale(len(cluster.worker_spec))

    cluster.loop.add_callback(replace)


@contextlib.contextmanager
def hold_back_interrupts() -> Iterator[None]:
    """Threads and processes that start in the block ignore Ctrl-C for good.

    Workers get it from a terminal as well, and would die with a traceback.
    """
    # Started later, this helper of multiprocessing would let them through.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def close_cluster(cluster: Cluster) -> None:
    """Stops the workers; those that do not listen die with this process."""
    with contextlib.suppress(TimeoutError):
        cluster.close(timeout=CLOSE_SECONDS)
