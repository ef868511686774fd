"""Dask clusters: workers on this machine, or in jobs of SLURM.

All speak through TLS, since others on a shared machine could have them run code
as us. Their files are in a folder that only this user can enter: Dask imports
modules from `dask-scratch-space`, which another user may have made before. Jobs
read their keys there, so that all nodes must share it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import make_private_folder
from tfcomp.storage.files import make_folder, write_text
from tfcomp.sweeps.scheduler_options import (
    SchedulerOptions,
    describe_jobs,
    read_jobqueue,
)
from tfcomp.sweeps.worker_task import KEY

if TYPE_CHECKING:
    from distributed import Client, Security

# A job whose worker is gone for so long is replaced.
LOST_SECONDS = 30
# Paths stand without quotes in the jobs that dask-jobqueue writes.
_PLAIN_PATH = re.compile(r"[\w./+=:@,-]+")
_SETTINGS: dict[str, Any] = {
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
_LOCAL_SETTINGS = _SETTINGS | {
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
        place = {"temporary-directory": str(folder)}
        with _open_cluster(
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
            _LOCAL_SETTINGS | place,
            "no worker can be started",
        ) as client:
            yield client


@contextlib.contextmanager
def _open_cluster(
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
                raise RunError(f"{problem}: {_shorten(error)}") from error
        yield client


def silence_dask() -> None:
    """Hides Dask's logs, mostly tracebacks of lost workers, from users."""
    import distributed  # noqa: F401  sets the levels as it is imported

    for name in ("", ".client", ".gc"):
        logging.getLogger(f"distributed{name}").setLevel(logging.CRITICAL)
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)


def _shorten(error: Exception) -> str:
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


@contextlib.contextmanager
def start_job_cluster(
    options: SchedulerOptions, folder: Path
) -> Iterator[Client]:
    """Starts a cluster without a job yet; jobs write logs into the folder."""
    if importlib.util.find_spec("dask_jobqueue") is None:
        rule = "needs dask-jobqueue: pip install 'tfcomp[cluster]'"
        raise ConfigError("cluster", rule, "slurm")
    if shutil.which("sbatch") is None:
        rule = "needs sbatch, which this machine does not have"
        raise ConfigError("cluster", rule, "slurm")
    import dask

    make = import_slurm()
    parent = Path(read_jobqueue("shared-temp-directory") or folder.absolute())
    if not _PLAIN_PATH.fullmatch(str(parent)):
        rule = "must be without spaces and quotes with --cluster"
        raise ConfigError("log_dir", rule, str(parent))
    make_folder(parent)
    with make_private_folder(parent) as private:
        settings = _SETTINGS | {
            "distributed.deploy.lost-worker-timeout": f"{LOST_SECONDS}s",
            # A new worker takes over tasks that seem long at once.
            "distributed.scheduler.default-task-durations": {KEY: "1h"},
        }
        inherited = settings | {"temporary-directory": str(private)}
        text = dask.config.serialize(inherited)
        private_scheduler = {
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
        }
        with _open_cluster(
            lambda: make(
                **describe_jobs(options, folder),
                job_cls=_make_job_class(make.job_cls),
                job_script_prologue=[
                    *(read_jobqueue("job-script-prologue") or []),
                    f"export DASK_INTERNAL_INHERIT_CONFIG={text}",
                ],
                local_directory=str(private),
                security=_make_keys(private),
                scheduler_options=private_scheduler
                | (read_jobqueue("scheduler-options") or {}),
                silence_logs=logging.CRITICAL,
            ),
            # A trial may outlive several jobs.
            settings | {"distributed.scheduler.allowed-failures": 10},
            "--cluster=slurm cannot be set up",
        ) as client:
            yield client


def submit_jobs(options: SchedulerOptions, cluster: Any) -> None:
    """Submits the first job, and lets Dask submit more as there is work."""

    async def submit_first() -> None:
        # `scale` alone would lose the error of the job in a callback.
        cluster.scale(jobs=1)
        await cluster._correct_state()

    try:
        cluster.sync(submit_first)
    except (OSError, RuntimeError, ValueError) as error:
        text = f"no job can be submitted: {_shorten(error)}"
        raise RunError(text) from None
    # As many jobs as there are tasks, however long these take.
    cluster.adapt(
        minimum_jobs=0, maximum_jobs=options.workers, target_duration="1ms"
    )


def import_slurm() -> Any:
    """Imports dask-jobqueue, which would let Ctrl-C end with status 0."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    from dask_jobqueue import SLURMCluster

    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return SLURMCluster


def _make_keys(folder: Path) -> Security:
    """Makes keys for this cluster, which workers read in the folder."""
    from distributed import Security

    # dask-jobqueue would write them itself, and remove them too late.
    keys = Security.temporary()
    for name in ("tls_ca_file", "tls_worker_cert", "tls_worker_key"):
        path = folder / f"{name}.pem"
        write_text(path, getattr(keys, name))
        setattr(keys, name, str(path))
    return keys


def _make_job_class(base: Any) -> type:
    """Returns jobs that record that they are closed, as Dask expects it."""
    from distributed import Status

    class Job(base):  # type: ignore[misc]
        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    return Job
