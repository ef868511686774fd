"""A Dask cluster whose workers are jobs of SLURM, PBS, LSF, SGE or HTCondor.

dask-jobqueue writes, submits and cancels the jobs. The scheduler of Dask runs
here and speaks through TLS; workers read its keys in a folder that only this
user can enter, among those that all nodes share.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.private_folder import make_private_folder
from tfcomp.sweeps import local_cluster
from tfcomp.sweeps.scheduler_options import SchedulerOptions

if TYPE_CHECKING:
    from dask_jobqueue import JobQueueCluster
    from distributed import Client, Security

CLASSES = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
}
DEFAULTS = {"cores": 1, "memory": "4GB", "disk": "1GB"}
# Paths stand without quotes in the jobs that dask-jobqueue writes.
_PLAIN_PATH = re.compile(r"[\w./+=:@,-]+")


@contextlib.contextmanager
def start_job_cluster(
    options: SchedulerOptions, folder: Path
) -> Iterator[tuple[JobQueueCluster, Client]]:
    """A cluster without a job yet, and its client, for `with`.

    All nodes share the folder. ConfigError as `check_cluster`, RunError if the
    scheduler cannot be started, or Dask's configuration breaks a rule.
    """
    kind = options.cluster
    check_cluster(kind)
    import dask
    from distributed import Client

    local_cluster.silence_dask()
    make = import_cluster(kind)
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(local_cluster.SETTINGS))
        parent = _read(kind, "shared-temp-directory") or folder.absolute()
        keys = _share_folder(Path(parent), stack)
        with local_cluster.hold_back_interrupts():
            try:
                cluster = make(
                    **describe_jobs(options, folder),
                    job_cls=_make_job_class(make.job_cls),
                    security=_make_keys(keys),
                    scheduler_options={
                        "dashboard": False,
                        "dashboard_address": "127.0.0.1:0",
                        **(_read(kind, "scheduler-options") or {}),
                    },
                    silence_logs=logging.CRITICAL,
                )
                stack.callback(local_cluster.close_cluster, cluster)
                client = stack.enter_context(Client(cluster))
            except (OSError, RuntimeError, TypeError, ValueError) as error:
                lines = str(error).splitlines() or [type(error).__name__]
                text = f"--cluster={kind} cannot be set up: {lines[-1]}"
                raise RunError(text) from error
        yield cluster, client


def check_cluster(kind: str) -> None:
    """ConfigError if no jobs can be submitted here, with what is missing."""
    if importlib.util.find_spec("dask_jobqueue") is None:
        rule = "needs dask-jobqueue: pip install 'tfcomp[cluster]'"
        raise ConfigError("cluster", rule, kind)
    program = import_cluster(kind).job_cls.submit_command.split()[0]
    if shutil.which(program) is None:
        rule = f"needs {program}, which this machine does not have"
        raise ConfigError("cluster", rule, kind)


def import_cluster(kind: str) -> type[JobQueueCluster]:
    """The class of a kind of cluster."""
    # Merely imported, dask-jobqueue takes over what signals do, so that Ctrl-C
    # would end with status 0.
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    import dask_jobqueue

    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return getattr(dask_jobqueue, CLASSES[kind])


def describe_jobs(options: SchedulerOptions, folder: Path) -> dict[str, Any]:
    """What a job says, by flags, Dask's configuration, or `DEFAULTS`."""
    kind = options.cluster
    flags = {
        "cores": options.job_cores,
        "memory": options.job_memory,
        "walltime": options.job_time,
        "queue": options.job_partition,
    }
    asked = {name: value for name, value in flags.items() if value}
    if kind == "lsf" and "walltime" in asked:  # it counts minutes
        hours, minutes, seconds = map(int, asked["walltime"].split(":"))
        minutes += bool(seconds)
        asked["walltime"] = f"{hours + minutes // 60}:{minutes % 60:02}"
    for name in ("cores", "memory", *(["disk"] if kind == "htcondor" else [])):
        asked.setdefault(name, _read(kind, name) or DEFAULTS[name])
    python = _read(kind, "python") or shlex.quote(sys.executable)
    return {
        **asked,
        **_ask_for_gpus(options, asked),
        "processes": 1,
        "job_name": "tfcomp",
        # Without a shell between, what ends the job reaches the worker.
        "python": f"exec {python}",
        "worker_command": "tfcomp.sweeps.job_worker",
        "worker_extra_args": ["--trials", str(options.trials_per_job)],
        "log_directory": _read(kind, "log-directory")
        or str(folder.absolute() / "logs/jobs"),
    }


def count_job_threads(options: SchedulerOptions) -> int:
    """Threads of a trial: its share of the cores of a job."""
    cores = options.job_cores or _read(options.cluster, "cores")
    return max(1, (cores or DEFAULTS["cores"]) // options.trials_per_job)


def _ask_for_gpus(
    options: SchedulerOptions, asked: dict[str, Any]
) -> dict[str, Any]:
    kind, gpus = options.cluster, options.job_gpus
    if not gpus:
        return {}
    if kind == "pbs":  # GPUs are among the resources that it is asked for
        from dask.utils import parse_bytes
        from dask_jobqueue.pbs import pbs_format_bytes_ceil

        memory = pbs_format_bytes_ceil(parse_bytes(asked["memory"]))
        spec = f"select=1:ncpus={asked['cores']}:mem={memory}:ngpus={gpus}"
        return {"resource_spec": spec}
    others = _read(kind, "job-extra-directives")
    if kind == "htcondor":
        ours = {"request_gpus": str(gpus)}
        return {"job_extra_directives": {**(others or {}), **ours}}
    ours = {"slurm": f"--gres=gpu:{gpus}", "lsf": f"-gpu num={gpus}"}[kind]
    return {"job_extra_directives": [*(others or []), ours]}


def _read(kind: str, name: str) -> Any:
    """A setting of Dask's configuration, None if there is none."""
    import dask

    return dask.config.get(f"jobqueue.{kind}.{name}", None)


def _share_folder(parent: Path, stack: contextlib.ExitStack) -> Path:
    """A folder for keys, which only this user can enter, while it is open."""
    if not _PLAIN_PATH.fullmatch(str(parent)):
        rule = "must be without spaces and quotes with --cluster"
        raise ConfigError("log_dir", rule, str(parent))
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return stack.enter_context(make_private_folder(parent))
    except OSError as error:
        raise RunError(f"--log_dir must be writable: {error}") from error


def _make_keys(folder: Path) -> Security:
    """Keys for this cluster, in files that only this user can read."""
    from distributed import Security

    # dask-jobqueue would write them itself, and remove them too late.
    keys = Security.temporary()
    for name in ("tls_ca_file", "tls_worker_cert", "tls_worker_key"):
        path = folder / f"{name}.pem"
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(getattr(keys, name))
        setattr(keys, name, str(path))
    return keys


def _make_job_class(base: type) -> type:
    """Jobs that say when they have been closed, as Dask expects it."""
    from distributed import Status

    class Job(base):
        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    return Job
