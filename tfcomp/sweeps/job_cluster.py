"""A Dask cluster whose workers are jobs of SLURM.

dask-jobqueue writes, submits, replaces and cancels the jobs. The scheduler of
Dask runs here and speaks through TLS. Workers read its keys, and have their
files, in a folder that all nodes share and only this user can enter.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import make_private_folder
from tfcomp.storage.files import make_folder, write_text
from tfcomp.sweeps.local_cluster import SETTINGS, open_cluster, shorten
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import KEY

if TYPE_CHECKING:
    from distributed import Client, Security

_ANSWER_SECONDS = 60
# A job whose worker is gone for so long is replaced.
LOST_SECONDS = 30
DEFAULTS: dict[str, Any] = {"cores": 1, "memory": "4GB"}
# Paths stand without quotes in the jobs that dask-jobqueue writes.
_PLAIN_PATH = re.compile(r"[\w./+=:@,-]+")


@contextlib.contextmanager
def start_job_cluster(
    options: SchedulerOptions, folder: Path
) -> Iterator[tuple[Any, Client]]:
    """Starts a cluster without a job yet; yields it and its client.

    Raises:
        ConfigError: No jobs can be submitted here.
        RunError: Dask's configuration breaks a rule.
    """
    check_cluster()
    import dask

    make = _import_dask_jobqueue().SLURMCluster
    parent = Path(_read("shared-temp-directory") or folder.absolute())
    with _share_folder(parent) as private:
        settings = SETTINGS | {
            "distributed.deploy.lost-worker-timeout": f"{LOST_SECONDS}s",
            # A new worker takes over tasks that seem long at once.
            "distributed.scheduler.default-task-durations": {KEY: "1h"},
        }
        inherited = settings | {"temporary-directory": str(private)}
        text = dask.config.serialize(inherited)
        start = f"export DASK_INTERNAL_INHERIT_CONFIG={text}"
        scheduler = {
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",
            **(_read("scheduler-options") or {}),
        }
        with open_cluster(
            lambda: make(
                **describe_jobs(options, folder),
                job_cls=_make_job_class(make.job_cls),
                job_script_prologue=[
                    *(_read("job-script-prologue") or []),
                    start,
                ],
                local_directory=str(private),
                security=_make_keys(private),
                scheduler_options=scheduler,
                silence_logs=logging.CRITICAL,
            ),
            # A trial may outlive several jobs.
            settings | {"distributed.scheduler.allowed-failures": 10},
            "--cluster=slurm cannot be set up",
        ) as opened:
            yield opened


def check_cluster() -> None:
    """Raises ConfigError if no jobs can be submitted here, with the reason."""
    if importlib.util.find_spec("dask_jobqueue") is None:
        rule = "needs dask-jobqueue: pip install 'tfcomp[cluster]'"
        raise ConfigError("cluster", rule, "slurm")
    if shutil.which("sbatch") is None:
        rule = "needs sbatch, which this machine does not have"
        raise ConfigError("cluster", rule, "slurm")


def submit_jobs(options: SchedulerOptions, cluster: Any) -> None:
    """Submits the first job, and lets Dask submit more as there is work.

    Raises:
        RunError: The first job is refused.
    """

    async def submit_first() -> None:
        # `scale` alone would lose the error of the job in a callback.
        cluster.scale(jobs=1)
        await cluster._correct_state()

    try:
        cluster.sync(submit_first)
    except (OSError, RuntimeError, ValueError) as error:
        text = f"no job can be submitted: {shorten(error)}"
        raise RunError(text) from None
    # As many jobs as there are tasks, however long these take.
    cluster.adapt(
        minimum_jobs=0, maximum_jobs=options.workers, target_duration="1ms"
    )


def are_jobs_queued(cluster: Any) -> bool:
    """Checks whether the queue lists a job of the cluster."""
    command = "squeue --me --noheader --format=%A"
    try:
        listed = subprocess.run(
            command.split(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=True,
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return False
    return any(job.job_id in listed for job in [*cluster.workers.values()])


def describe_jobs(options: SchedulerOptions, folder: Path) -> dict[str, Any]:
    """Returns resources of jobs: by flags, Dask's file, or `DEFAULTS`."""
    flags = {
        "cores": options.job_cores,
        "memory": options.job_memory,
        "walltime": options.job_time,
        "queue": options.job_partition,
    }
    asked: dict[str, Any] = {n: value for n, value in flags.items() if value}
    for name, value in DEFAULTS.items():
        asked.setdefault(name, _read(name) or value)
    if options.job_gpus:
        others = _read("job-extra-directives") or []
        gpus = f"--gres=gpu:{options.job_gpus}"
        asked["job_extra_directives"] = [*others, gpus]
    logs = str(folder.absolute() / "logs/jobs")
    return {
        **asked,
        "processes": 1,
        "job_name": "tfcomp",
        # Without a shell between, the signal that ends the job reaches Dask.
        "python": f"exec {_read('python') or shlex.quote(sys.executable)}",
        # One task at a time, whose memory the cluster limits.
        "worker_extra_args": [
            *("--nthreads", "1"),
            *("--memory-limit", "0"),
            "--no-dashboard",
        ],
        "log_directory": _read("log-directory") or logs,
    }


def count_job_threads(options: SchedulerOptions) -> int:
    """Returns the threads of a trial, one for each core of its job."""
    cores: int = options.job_cores or _read("cores") or DEFAULTS["cores"]
    return cores


def _import_dask_jobqueue() -> Any:
    # The import takes over signals, so that Ctrl-C would end with status 0.
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    import dask_jobqueue

    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return dask_jobqueue


def _read(name: str) -> Any:
    """Returns a setting of Dask's configuration, None if there is none."""
    import dask

    return dask.config.get(f"jobqueue.slurm.{name}", None)


@contextlib.contextmanager
def _share_folder(parent: Path) -> Iterator[Path]:
    """Makes a folder that only this user can enter, for one block."""
    if not _PLAIN_PATH.fullmatch(str(parent)):
        rule = "must be without spaces and quotes with --cluster"
        raise ConfigError("log_dir", rule, str(parent))
    make_folder(parent)
    with make_private_folder(parent) as folder:
        yield folder


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
