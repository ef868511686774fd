"""A Dask cluster whose workers are jobs of SLURM, PBS, LSF, SGE or HTCondor.

dask-jobqueue writes, submits and cancels the jobs. The scheduler of Dask runs
here and speaks through TLS; workers read its keys in a folder that only this
user can enter, among those that all nodes share.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import logging
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.private_folder import make_private_folder
from tfcomp.storage.files import make_folder
from tfcomp.sweeps import local_cluster
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_progress import say

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
# Programs that print a line for every job of a user, its number first.
LISTS = {
    "slurm": "squeue --me --noheader --format=%A",
    "pbs": "qstat -u {user}",
    "lsf": "bjobs -noheader -o jobid",
    "sge": "qstat -u {user}",
    "htcondor": "condor_q -nobatch -autoformat:j ClusterId",
}
ASK_SECONDS = 15.0  # between two questions for the jobs
ANSWER_SECONDS = 60
MAX_FAILED = 3  # jobs in a row that end before they have reached us
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
        # A trial may outlive several jobs.
        failures = {"distributed.scheduler.allowed-failures": 10}
        settings = local_cluster.SETTINGS | failures
        stack.enter_context(dask.config.set(settings))
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
        "processes": options.trials_per_job,
        "job_name": "tfcomp",
        # Without a shell between, what ends the job reaches the worker.
        "python": f"exec {python}",
        "worker_command": "tfcomp.sweeps.job_worker",
        # One task at a time in each process, whose memory the cluster limits.
        "worker_extra_args": [
            *("--nworkers", str(options.trials_per_job)),
            *("--nthreads", "1"),
            *("--memory-limit", "0"),
            "--no-dashboard",
        ],
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
        make_folder(parent)
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


class JobWatch:
    """Has dask-jobqueue submit and cancel jobs as there is work for them.

    Dask would wait for ever for jobs that have ended, so the queue is asked.
    """

    def __init__(
        self, options: SchedulerOptions, cluster: JobQueueCluster
    ) -> None:
        self.waiting = False  # True while jobs wait in the queue
        self.problem = ""  # why there will be no more jobs
        self._cluster = cluster
        self._kind = options.cluster
        self._most = math.ceil(options.workers / options.trials_per_job)
        self._arrived: set[str] = set()  # jobs that had a worker
        self._missing: set[str] = set()  # when the queue was last asked
        self._failed = 0  # jobs in a row that never had a worker
        self._next = 0.0

    def start(self) -> None:
        """Submits the first job, then more; RunError if it is refused."""
        try:
            self._cluster.sync(self._submit_first)
        except (OSError, RuntimeError, ValueError) as error:
            text = f"no job can be submitted: {shorten(error)}"
            raise RunError(text) from None
        self.waiting = True
        # As many jobs as there are tasks, however long these take.
        self._cluster.adapt(
            minimum_jobs=0, maximum_jobs=self._most, target_duration="1ms"
        )

    async def _submit_first(self) -> None:
        # `scale` alone would lose the error of the job in a callback.
        self._cluster.scale(jobs=1)
        await self._cluster._correct_state()

    def tend(self) -> None:
        """Gives up jobs that the queue does not know, so that others follow."""
        here = self._list_connected()
        self._arrived |= here
        self._failed = 0 if here else self._failed
        absent = set(self._cluster.worker_spec) - here
        if not absent:
            self.waiting = False
        elif time.monotonic() >= self._next:
            listed = list_jobs(self._kind)
            self._next = time.monotonic() + ASK_SECONDS
            if listed is not None:
                self._give_up(absent, listed)

    def _list_connected(self) -> set[str]:
        """The jobs of which a worker has reached the scheduler."""
        workers = list(self._cluster.scheduler.workers.values())
        names = {str(worker.name) for worker in workers}
        return {
            job
            for job in list(self._cluster.worker_spec)
            if any(re.fullmatch(rf"{re.escape(job)}(-\d+)?", n) for n in names)
        }

    def _give_up(self, absent: set[str], listed: set[str]) -> None:
        """Drops those of the absent jobs that were not listed twice."""
        jobs = dict(self._cluster.workers)
        missing = {
            name
            for name in absent
            if name not in jobs or jobs[name].job_id not in listed
        }
        self.waiting = bool(absent - missing)
        ended, self._missing = missing & self._missing, missing
        self._failed += len(ended - self._arrived)
        if self._failed >= MAX_FAILED:
            self.problem = (
                f"{self._failed} jobs in a row have ended before they reached "
                "this machine (their output says why)"
            )
        if ended:
            say(f"{len(ended)} jobs have ended")
            self._cluster.sync(self._drop, ended)

    async def _drop(self, names: set[str]) -> None:
        for name in names:
            self._cluster.worker_spec.pop(name, None)
            if job := self._cluster.workers.get(name):
                job.job_id = None  # nothing to cancel
        await self._cluster._correct_state()


def list_jobs(kind: str) -> set[str] | None:
    """The numbers of this user's jobs, None if the cluster does not answer."""
    command = shlex.split(LISTS[kind].format(user=getpass.getuser()))
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # The number of HTCondor has two parts.
    found = re.findall(r"^\s*(\d+(?:\.\d+)?)", answer.stdout, re.MULTILINE)
    return set(found)


def shorten(error: Exception) -> str:
    """The message of a program that failed, in one line."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and line[-1] != ":"]
    return told[-1] if told else type(error).__name__
