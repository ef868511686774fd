"""Dask clusters: workers on this machine, or a scheduler that runs already.

Our own speak through TLS, since others on a shared machine could have them run
code as us. Their files are in a folder that only this user can enter: Dask
imports modules from `dask-scratch-space`, which another user may have made
before.
"""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import make_private_folder

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS = 5
SETTINGS: dict[str, Any] = {
    # Dask limits the threads of its workers and changes how they return
    # memory, which trials would inherit. None removes a variable.
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(
        (
            "MALLOC_TRIM_THRESHOLD_",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
        )
    ),
    # A task whose worker has died four times is recorded as failed.
    "distributed.scheduler.allowed-failures": 3,
    # Pages with logs and counts, which know no login.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Dask's measurements for dashboards cost more than all the rest when tasks
    # take minutes.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
_LOCAL_SETTINGS = SETTINGS | {
    # By default a worker that has not come back after 15 s is given up, also
    # while it is about to start on a busy machine.
    "distributed.deploy.lost-worker-timeout": "100000 h",
    "distributed.scheduler.no-workers-timeout": "300s",
}


@contextlib.contextmanager
def start_local_cluster(num_workers: int) -> Iterator[Client]:
    """Starts one-thread processes; RunError if that is not possible."""
    from distributed import LocalCluster

    with make_private_folder() as folder:
        settings = _LOCAL_SETTINGS | {"temporary-directory": str(folder)}
        with open_cluster(
            lambda: LocalCluster(
                n_workers=num_workers,
                threads_per_worker=1,
                memory_limit=0,  # it would count workers, not tasks
                dashboard_address="127.0.0.1:0",  # any free port
                scheduler_kwargs={"dashboard": False},
                local_directory=str(folder),
                env={"TMPDIR": str(folder)},
                silence_logs=logging.CRITICAL,
                security=True,
            ),
            settings,
            "no worker can be started",
        ) as client:
            yield client


@contextlib.contextmanager
def open_cluster(
    make: Callable[[], Any], settings: dict[str, Any], problem: str
) -> Iterator[Client]:
    """Opens a cluster and its client; the settings hold until both close."""
    import dask
    from distributed import Client

    silence_dask()
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        with _hold_back_interrupts():
            try:
                cluster = make()
                stack.callback(_close, cluster)
                client = stack.enter_context(Client(cluster))
            except (OSError, RuntimeError, TypeError, ValueError) as error:
                raise RunError(f"{problem}: {shorten(error)}") from error
        yield client


def silence_dask() -> None:
    """Hides Dask's logs, mostly tracebacks of lost workers, from users."""
    import distributed  # noqa: F401  sets the levels as it is imported

    for name in ("", ".client", ".gc"):
        logging.getLogger(f"distributed{name}").setLevel(logging.CRITICAL)
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)


def shorten(error: Exception) -> str:
    """Returns the last line of a message, or the kind of the error."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and line[-1] != ":"]
    return told[-1] if told else type(error).__name__


@contextlib.contextmanager
def _hold_back_interrupts() -> Iterator[None]:
    """Lets workers, which start in the block, ignore Ctrl-C."""
    # Started later, this helper of multiprocessing would let them through.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _close(cluster: Any) -> None:
    """Stops the workers; those that do not listen die with this process."""
    with contextlib.suppress(TimeoutError):
        cluster.close(timeout=60)


def connect(address: str) -> Client:
    """Connects to a scheduler; ConfigError if none listens at the address."""
    from distributed import Client

    silence_dask()
    try:
        return Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, TypeError, ValueError) as error:
        # Dask raises TypeError for a protocol that is not set up here, as
        # tls:// without its certificates.
        rule = "must be the address of a running Dask scheduler"
        raise ConfigError("scheduler", rule, address) from error


def count_workers(client: Client) -> int:
    """Returns the number of workers; 0 if the scheduler is gone, too."""
    try:
        return len(client.nthreads())
    except (OSError, RuntimeError, ValueError):
        return 0
