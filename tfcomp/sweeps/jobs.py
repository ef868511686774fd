"""Workers in jobs of SLURM, through dask-jobqueue.

Jobs read their keys in a folder of the sweep that only this user can enter, so
all nodes must share it. Dask replaces a job whose worker is lost, but not one
that ends before its worker registers: `JobWatch` does.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import make_private_folder
from tfcomp.storage.files import make_folder, write_text
from tfcomp.sweeps import scheduler_options
from tfcomp.sweeps.clusters import SETTINGS, open_cluster, shorten
from tfcomp.sweeps.scheduler_options import SchedulerOptions, read_jobqueue
from tfcomp.sweeps.worker_task import KEY

if TYPE_CHECKING:
    from distributed import Client, Security

# A job whose worker is gone for so long is replaced.
LOST_SECONDS = 30
# Paths stand without quotes in the jobs that dask-jobqueue writes.
_PLAIN_PATH = re.compile(r"[\w./+=:@,-]+")


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
        settings = SETTINGS | {
            "distributed.deploy.lost-worker-timeout": f"{LOST_SECONDS}s",
            # A new worker takes over tasks that seem long at once.
            "distributed.scheduler.default-task-durations": {KEY: "1h"},
        }
        inherited = settings | {"temporary-directory": str(private)}
        text = dask.config.serialize(inherited)
        scheduler = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        with open_cluster(
            lambda: make(
                **scheduler_options.describe_jobs(options, folder),
                job_cls=_make_job_class(make.job_cls),
                job_script_prologue=[
                    *(read_jobqueue("job-script-prologue") or []),
                    f"export DASK_INTERNAL_INHERIT_CONFIG={text}",
                ],
                local_directory=str(private),
                security=_make_keys(private),
                scheduler_options=scheduler
                | (read_jobqueue("scheduler-options") or {}),
                silence_logs=logging.CRITICAL,
            ),
            # A trial may outlive several jobs.
            settings | {"distributed.scheduler.allowed-failures": 10},
            "--cluster=slurm cannot be set up",
        ) as client:
            yield client


class JobWatch:
    """Submits jobs as there is work, and replaces those that end too early."""

    def __init__(
        self, options: SchedulerOptions, cluster: Any, folder: Path
    ) -> None:
        """Submits the first job; RunError if it is refused."""
        self._cluster, self._limit = cluster, 2 * options.workers
        described = scheduler_options.describe_jobs(options, folder)
        self._logs = described["log_directory"]
        self._last_start, self._due = 0.0, 0.0

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

    def check(self, logs: Iterable[Path]) -> None:
        """Raises a RunError if job after job ends and no task changes a log."""
        jobs = self._cluster.job_cls
        times = [log.stat().st_mtime for log in logs if log.exists()]
        last_start = max(times, default=0.0)
        if last_start > self._last_start:
            self._last_start, jobs.submitted = last_start, 0
        known = self._cluster.observed
        submitted = dict(self._cluster.workers).items()
        silent = {n: job.job_id for n, job in submitted if n not in known}
        if not silent or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + LOST_SECONDS
        lost = _find_lost(silent)
        if jobs.submitted >= self._limit + (not lost):
            log = f"{self._logs}/tfcomp-{jobs.last_id}"
            raise RunError(
                f"--cluster: {jobs.submitted} jobs were submitted and ended "
                f"before a trial started: read `cat {log}.*`, mend the flags "
                "--job_... or ~/.config/dask/jobqueue.yaml, and repeat the "
                "command"
            )
        for name in lost:
            self._cluster.workers.pop(name, None)
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._cluster.sync(self._cluster._correct_state)


def _find_lost(numbers: Mapping[str, str]) -> list[str]:
    """Returns the names of jobs that SLURM does not list any more."""
    command = ["squeue", "--noheader", "--format=%A", f"--user={os.getuid()}"]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []  # SLURM is busy
    queued = result.stdout.split()
    return [name for name, number in numbers.items() if number not in queued]


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
    """Returns jobs that are counted, and say when they are closed."""
    from distributed import Status

    class Job(base):  # type: ignore[misc]
        submitted = 0  # since a task has started
        last_id = ""

        async def start(self) -> None:
            Job.submitted += 1
            await super().start()
            Job.last_id = self.job_id

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed  # as Dask expects it

    return Job
