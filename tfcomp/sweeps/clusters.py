"""Dask clusters: workers on this machine, in jobs, or of another scheduler.

Clusters that tfcomp starts speak through TLS: a port without it lets every
other user of the machine run code as us. Their files are in a folder that only
this user can enter, since Dask imports modules from its scratch folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import make_private_folder
from tfcomp.storage.files import make_folder, write_text
from tfcomp.sweeps.scheduler_options import JOB_CLUSTERS, SchedulerOptions

if TYPE_CHECKING:
    from distributed import Client, Security

_CONNECT_SECONDS = 5
# Paths stand without quotes in the jobs that dask-jobqueue writes.
_PLAIN_PATH = re.compile(r"[\w./+=:@,-]+")
_THREAD_VARIABLES = (
    "MALLOC_TRIM_THRESHOLD_",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
SETTINGS: dict[str, Any] = {
    # Dask limits the threads of its workers and changes how they return
    # memory, which trials would inherit. None removes a variable.
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(_THREAD_VARIABLES),
    # Pages with logs and counts, which know no login.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Dask's measurements for dashboards cost more than all the rest when tasks
    # take minutes.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


@contextlib.contextmanager
def start_local_cluster(num_workers: int) -> Iterator[Client]:
    """Starts worker processes on this machine, with one thread each.

    Args:
        num_workers: The number of trials at a time.

    Raises:
        RunError: No worker can be started.
    """
    from distributed import LocalCluster

    with make_private_folder() as folder:
        settings = SETTINGS | {
            "temporary-directory": str(folder),
            # By default a worker that has not come back after 15 s is given
            # up, also while it is about to start on a busy machine.
            "distributed.deploy.lost-worker-timeout": "100000 h",
        }

        def make_cluster() -> LocalCluster:
            return LocalCluster(
                n_workers=num_workers,
                threads_per_worker=1,
                memory_limit=0,  # it would count workers, not tasks
                dashboard_address="127.0.0.1:0",  # any free port
                scheduler_kwargs={"dashboard": False},
                local_directory=str(folder),
                env={"TMPDIR": str(folder)},
                silence_logs=logging.CRITICAL,
                security=True,
            )

        problem = "no worker can be started"
        with _open_cluster(make_cluster, settings, problem) as client:
            yield client


@contextlib.contextmanager
def start_job_cluster(
    options: SchedulerOptions, folder: Path
) -> Iterator[Client]:
    """Starts workers as jobs of a cluster, through dask-jobqueue.

    Args:
        options: The cluster, the number of jobs, and what each asks for.
        folder: The folder of the sweep, which all nodes see. The output of
            jobs is written to `logs/jobs` in it.

    Raises:
        ConfigError: dask-jobqueue or the programs of the cluster are missing.
        RunError: A job is refused, or none has started in time.
    """
    job_cluster = import_job_cluster(options.cluster)
    job = describe_job(options, folder)
    if not _PLAIN_PATH.fullmatch(str(folder.absolute())):
        rule = "must be without spaces and quotes with --cluster"
        raise ConfigError("log_dir", rule, str(folder))

    with make_private_folder(make_folder(folder.absolute())) as private:

        def make_cluster() -> Any:
            return job_cluster(
                **job,
                local_directory=str(private),
                security=_write_keys(private),
                scheduler_options={
                    "dashboard": False,
                    "dashboard_address": "127.0.0.1:0",
                    **_read_jobqueue(options.cluster, "scheduler-options", {}),
                },
                silence_logs=logging.CRITICAL,
            )

        problem = f"--cluster={options.cluster} cannot be set up"
        with _open_cluster(make_cluster, SETTINGS, problem) as client:
            _submit_jobs(client, options, job["log_directory"])
            yield client


def describe_job(options: SchedulerOptions, folder: Path) -> dict[str, Any]:
    """Describes a job by arguments of dask-jobqueue.

    Flags go before Dask's file (`~/.config/dask/jobqueue.yaml`), which
    dask-jobqueue reads, and the file goes before one core and 4 GB.

    Args:
        options: What flags say about jobs.
        folder: The folder of the sweep.
    """
    import dask

    name = options.cluster
    python = _read_jobqueue(name, "python", shlex.quote(sys.executable))
    prologue = _read_jobqueue(name, "job-script-prologue", [])
    settings = dask.config.serialize(SETTINGS)
    logs = str(folder.absolute() / "logs" / "jobs")
    job: dict[str, Any] = {
        "cores": options.job_cores or _read_jobqueue(name, "cores", 1),
        "memory": options.job_memory or _read_jobqueue(name, "memory", "4GB"),
        "processes": 1,
        "job_name": "tfcomp",
        # Without a shell between, the signal that ends the job reaches Dask.
        "python": f"exec {python}",
        "job_script_prologue": [
            *prologue,
            f"export DASK_INTERNAL_INHERIT_CONFIG={settings}",
        ],
        # One task at a time, whose memory the cluster limits.
        "worker_extra_args": [
            *("--nthreads", "1"),
            *("--memory-limit", "0"),
            "--no-dashboard",
        ],
        "log_directory": _read_jobqueue(name, "log-directory", logs),
    }
    if options.job_time:
        job["walltime"] = options.job_time
    if options.job_partition:
        job["queue"] = options.job_partition
    if options.job_gpus:
        others = _read_jobqueue(name, "job-extra-directives", [])
        gpus = f"--gres=gpu:{options.job_gpus}"
        job["job_extra_directives"] = [*others, gpus]
    return job


def import_job_cluster(name: str) -> Any:
    """Imports a class of dask-jobqueue, as SLURMCluster for `slurm`.

    Raises:
        ConfigError: dask-jobqueue or the programs of the cluster are missing.
    """
    if importlib.util.find_spec("dask_jobqueue") is None:
        rule = "needs dask-jobqueue: pip install 'tfcomp[cluster]'"
        raise ConfigError("cluster", rule, name)
    # Its import replaces the handler of Ctrl-C by one with status 0.
    handler = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    signal.signal(signal.SIGINT, handler)
    job_cluster = getattr(dask_jobqueue, JOB_CLUSTERS[name])
    program = job_cluster.job_cls.submit_command.split()[0]
    if shutil.which(program) is None:
        rule = f"needs {program}, which this machine does not have"
        raise ConfigError("cluster", rule, name)
    return job_cluster


def _read_jobqueue(cluster: str, name: str, default: Any) -> Any:
    """Reads a setting of jobs in Dask's file."""
    import dask

    return dask.config.get(f"jobqueue.{cluster}.{name}", None) or default


def _write_keys(folder: Path) -> Security:
    """Makes keys for one cluster, which its jobs read in a folder."""
    from distributed import Security

    # dask-jobqueue would write them itself, and remove them too late.
    keys = Security.temporary()
    for name in ("tls_ca_file", "tls_worker_cert", "tls_worker_key"):
        path = folder / f"{name}.pem"
        write_text(path, getattr(keys, name))
        setattr(keys, name, str(path))
    return keys


def _submit_jobs(client: Client, options: SchedulerOptions, logs: str) -> None:
    """Submits all jobs, and waits for the first worker."""

    async def submit() -> None:
        client.cluster.scale(jobs=options.workers)
        await client.cluster  # else the error of a job would be lost

    try:
        client.cluster.sync(submit)
    except (AssertionError, OSError, RuntimeError, ValueError) as error:
        text = f"no job can be submitted: {_shorten(error)}"
        raise RunError(text) from error

    print(f"waiting for the first job; its output: {logs}", flush=True)
    try:
        client.wait_for_workers(1, timeout=options.job_wait_seconds)
    except TimeoutError as error:
        raise RunError(
            f"no job has started within --job_wait={options.job_wait}: read "
            f"the output of jobs in {logs}"
        ) from error


@contextlib.contextmanager
def _open_cluster(
    make_cluster: Callable[[], Any], settings: dict[str, Any], problem: str
) -> Iterator[Client]:
    """Opens a cluster and its client; Dask's settings hold until both close."""
    import dask
    from distributed import Client

    _silence_dask()
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        with _hold_back_interrupts():
            try:
                cluster = make_cluster()
                stack.callback(_close, cluster)
                client = stack.enter_context(Client(cluster))
            except (OSError, RuntimeError, TypeError, ValueError) as error:
                raise RunError(f"{problem}: {_shorten(error)}") from error
        yield client


def _silence_dask() -> None:
    """Hides Dask's logs, mostly tracebacks of lost workers, from users."""
    import distributed  # noqa: F401  sets the levels as it is imported

    for name in ("", ".client", ".gc"):
        logging.getLogger(f"distributed{name}").setLevel(logging.CRITICAL)
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)


def _shorten(error: Exception) -> str:
    """Returns the last line of a message, or the kind of the error."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.endswith(":")]
    return lines[-1] if lines else type(error).__name__


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
    from distributed import Status

    try:
        cluster.close(timeout=60)
    except TimeoutError:
        pass
    except AssertionError:
        # Dask misses a job that was refused, when all else is closed.
        cluster.status = Status.closed


def connect(address: str) -> Client:
    """Connects to a scheduler that runs already.

    Args:
        address: As `tcp://host:8786`.

    Raises:
        ConfigError: No scheduler answers there.
    """
    from distributed import Client

    _silence_dask()
    try:
        return Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, TypeError, ValueError) as error:
        # Dask raises TypeError for a protocol that is not set up here, as
        # tls:// without its certificates.
        rule = "must be the address of a running Dask scheduler"
        raise ConfigError("scheduler", rule, address) from error


def list_workers(client: Client) -> list[str]:
    """Lists the addresses of all workers.

    Raises:
        RunError: The scheduler does not answer any more.
    """
    try:
        return list(client.nthreads())
    except (OSError, RuntimeError, ValueError) as error:
        raise RunError("the scheduler is gone: repeat the command") from error
