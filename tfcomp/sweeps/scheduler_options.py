"""Flags of the place where trials and searches run; cores and GPUs."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.process import count_cores, count_memory
from tfcomp.config.settings import Settings, non_negative, setting

_FORMS = {
    "job_memory": (r"\d+(\.\d+)?[kMGT]i?B", "a number and a unit, as 8GB"),
    "job_time": (r"\d{1,4}:[0-5]\d:[0-5]\d", "hours:minutes:seconds"),
    "job_partition": (r"[\w.@:,+-]+", "a name without spaces"),
    "scheduler": (
        r"(\w+://)?(\[[\da-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}",
        "the address of a scheduler, as tcp://host:8786",
    ),
}
JOB_DEFAULTS: dict[str, Any] = {"cores": 1, "memory": "4GB"}
# Of a process that has imported TensorFlow.
WORKER_BYTES = 500 * 10**6


@dataclass(frozen=True)
class SchedulerOptions(Settings):
    """The flags of all commands that start workers."""

    cluster: str = setting(
        "",
        "Run each trial as a job of a cluster: slurm. What the flags below "
        "leave out is read from the configuration of dask-jobqueue "
        "(~/.config/dask/jobqueue.yaml).",
        choices=("", "slurm"),
    )
    job_cores: int = non_negative(
        0,
        "Cores of a job. With 0 as many as Dask's file says, or one.",
        maximum=1024,
    )
    job_memory: str = setting(
        "", "Memory of a job, as 8GB. By default as Dask's file says, or 4GB."
    )
    job_time: str = setting(
        "",
        "Time limit of a job, as 12:00:00. A trial that reaches it continues "
        "in the next job from its last checkpoint. By default as Dask's file "
        "says, or half an hour.",
    )
    job_gpus: int = non_negative(0, "GPUs of a job.", maximum=64)
    job_partition: str = setting(
        "", "Partition of the jobs. By default as Dask's file says."
    )
    workers: int = non_negative(
        0,
        "How many trials run at the same time. With 0 there is one for each "
        "GPU of this machine, or a single one without GPUs.",
        maximum=10**4,
    )
    scheduler: str = setting(
        "",
        "Address of a running Dask scheduler, as tcp://host:8786, whose "
        "workers see the same folders as this machine. Without it, workers "
        "are started on this machine.",
    )
    threads: int = non_negative(
        0,
        "How many threads each trial computes with. With 0 the cores of this "
        "machine are divided among its workers (with --scheduler the "
        "environment of the workers decides), and a small network has one.",
        maximum=1024,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (form, words) in _FORMS.items():
            value = getattr(self, name)
            if value and not re.fullmatch(form, value, re.ASCII):
                raise ConfigError(name, f"must be {words}", value)
        jobs = [name for name in self.to_flags() if name.startswith("job_")]
        self._refuse(jobs, not self.cluster, "needs --cluster")
        rule = "must be left out with --scheduler, which has its workers"
        self._refuse(("cluster", "workers"), bool(self.scheduler), rule)
        if self.cluster and not self.workers:
            rule = "must be given with --cluster: the trials at a time"
            raise ConfigError("workers", rule, self.workers)
        most = max(1, count_memory() // WORKER_BYTES)
        if self.workers > most and not self.cluster:
            rule = f"must be at most {most}, as many as fit into the memory"
            raise ConfigError("workers", rule, self.workers)

    def _refuse(self, names: Any, applies: bool, rule: str) -> None:
        """Raises ConfigError if a rule applies and a flag has a value."""
        for name in names:
            value = getattr(self, name)
            if applies and value != getattr(type(self), name):
                raise ConfigError(name, rule, value)


def is_here(flags: Mapping[str, Any]) -> bool:
    """Checks whether trials run on this machine."""
    return not (flags.get("scheduler") or flags.get("cluster"))


def count_threads(workers: int) -> int:
    """Returns the threads for each of several workers, at least one."""
    return max(1, count_cores() // workers)


def list_gpus() -> list[str]:
    """Returns the GPUs that this process may use, as CUDA names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        # CUDA ignores entries after the first invalid one, such as -1.
        stops = [i for i, name in enumerate(names) if name in ("", "-1")]
        return names[: stops[0]] if stops else names
    # TensorFlow would occupy a GPU by looking, so the driver is asked.
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        found = subprocess.check_output(command, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that is absent or silent cannot train either
    return found.split()


def describe_jobs(options: SchedulerOptions, folder: Path) -> dict[str, Any]:
    """Returns resources of jobs: by flags, Dask's file, or `JOB_DEFAULTS`."""
    flags = {
        "cores": options.job_cores,
        "memory": options.job_memory,
        "walltime": options.job_time,
        "queue": options.job_partition,
    }
    asked: dict[str, Any] = {n: value for n, value in flags.items() if value}
    for name, value in JOB_DEFAULTS.items():
        asked.setdefault(name, read_jobqueue(name) or value)
    if options.job_gpus:
        others = read_jobqueue("job-extra-directives") or []
        gpus = f"--gres=gpu:{options.job_gpus}"
        asked["job_extra_directives"] = [*others, gpus]
    logs = str(folder.absolute() / "logs/jobs")
    python = read_jobqueue("python") or shlex.quote(sys.executable)
    return {
        **asked,
        "processes": 1,
        "job_name": "tfcomp",
        # Without a shell between, the signal that ends the job reaches Dask.
        "python": f"exec {python}",
        # One task at a time, whose memory the cluster limits.
        "worker_extra_args": (
            "--nthreads 1 --memory-limit 0 --no-dashboard".split()
        ),
        "log_directory": read_jobqueue("log-directory") or logs,
    }


def read_jobqueue(name: str) -> Any:
    """Returns a setting of Dask's configuration, None if there is none."""
    import dask

    return dask.config.get(f"jobqueue.slurm.{name}", None)
