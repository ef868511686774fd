"""Flags of the place where trials and searches run; cores and GPUs."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tfcomp.config.errors import ConfigError
from tfcomp.config.process import count_cores, count_memory
from tfcomp.config.settings import Settings, non_negative, setting

Item = TypeVar("Item")

# Classes of dask-jobqueue.
JOB_CLUSTERS = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
}
_TIME = (r"\d{1,4}:[0-5]\d:[0-5]\d", "hours:minutes:seconds")
_FORMS = {
    "job_memory": (r"\d+(\.\d+)?[kMGT]i?B", "a number and a unit, as 8GB"),
    "job_time": _TIME,
    "job_wait": _TIME,
    "job_partition": (r"[\w.@:,+-]+", "a name without spaces"),
    "scheduler": (
        r"(\w+://)?(\[[\da-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}",
        "the address of a scheduler, as tcp://host:8786",
    ),
    "shard": (r"\d{1,6}/\d{1,6}", "a part and the number of parts, as 2/3"),
}
# Of a process that has imported TensorFlow.
WORKER_BYTES = 500 * 10**6


@dataclass(frozen=True)
class SchedulerOptions(Settings):
    """The flags of all commands that start workers."""

    shard: str = setting(
        "",
        "Run a part of the trials: 2/3 is the second of three parts, which "
        "may run at the same time on machines with one file system, as "
        "--shard=$SLURM_ARRAY_TASK_ID/3. Each part writes the tables of all "
        "trials that are finished.",
    )
    workers: int = non_negative(
        0,
        "How many trials run at the same time. With 0 there is one for each "
        "GPU of this machine, or a single one without GPUs.",
        maximum=10**4,
    )
    threads: int = non_negative(
        0,
        "How many threads each trial computes with. With 0 the cores of this "
        "machine are divided among its workers (with --scheduler the "
        "environment of the workers decides), and a small network has one.",
        maximum=1024,
    )
    scheduler: str = setting(
        "",
        "Address of a running Dask scheduler, as tcp://host:8786, whose "
        "workers see the same folders as this machine. Without it, workers "
        "are started on this machine.",
    )
    cluster: str = setting(
        "",
        "Run trials in jobs of a cluster, as slurm. What the flags below "
        "leave out is read from the configuration of dask-jobqueue "
        "(~/.config/dask/jobqueue.yaml).",
        choices=("", *JOB_CLUSTERS),
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
    job_gpus: int = non_negative(0, "GPUs of a job of SLURM.", maximum=64)
    job_partition: str = setting(
        "", "Partition of the jobs. By default as Dask's file says."
    )
    job_wait: str = setting(
        "1:00:00", "How long the first job may wait for its start."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (form, words) in _FORMS.items():
            value = getattr(self, name)
            if value and not re.fullmatch(form, value, re.ASCII):
                raise ConfigError(name, f"must be {words}", value)
        self._check_shard()
        self._check_jobs()
        self._check_memory()

    def _check_shard(self) -> None:
        if not self.shard:
            return
        number, count = self._split_shard()
        if not 1 <= number <= count:
            rule = "must name a part from 1 to the number of parts, as 2/3"
            raise ConfigError("shard", rule, self.shard)

    def _check_jobs(self) -> None:
        if self.scheduler:
            rule = "must be left out with --scheduler, which has its workers"
            self._refuse(("cluster", "workers"), rule)
        if not self.cluster:
            flags = [name for name in self.to_flags() if name[:4] == "job_"]
            self._refuse(flags, "needs --cluster")
            return
        if self.cluster != "slurm":
            self._refuse(["job_gpus"], "needs --cluster=slurm")
        if not self.workers:
            rule = "must be given with --cluster: the trials at a time"
            raise ConfigError("workers", rule, self.workers)

    def _refuse(self, names: Iterable[str], rule: str) -> None:
        """Raises ConfigError if one of some flags has a value."""
        for name in names:
            value = getattr(self, name)
            if value != getattr(type(self), name):
                raise ConfigError(name, rule, value)

    def _check_memory(self) -> None:
        most = max(1, count_memory() // WORKER_BYTES)
        if self.workers > most and not self.cluster:
            rule = f"must be at most {most}, as many as fit into the memory"
            raise ConfigError("workers", rule, self.workers)

    @property
    def job_wait_seconds(self) -> int:
        hours, minutes, seconds = self.job_wait.split(":")
        return 3600 * int(hours) + 60 * int(minutes) + int(seconds)

    def select_shard(self, items: Sequence[Item]) -> Sequence[Item]:
        """Selects every n-th item, from the k-th; all without `--shard=k/n`.

        Parts do not depend on what is finished, so they stay disjoint.

        Args:
            items: All trials or searches, in the order of the command.
        """
        if not self.shard:
            return items
        number, count = self._split_shard()
        return items[number - 1 :: count]

    def _split_shard(self) -> tuple[int, int]:
        number, count = self.shard.split("/")
        return int(number), int(count)


def is_here(flags: Mapping[str, Any]) -> bool:
    """Checks whether trials run on this machine."""
    return not (flags.get("scheduler") or flags.get("cluster"))


def count_threads(workers: int) -> int:
    """Returns the threads for each of several workers, at least one."""
    return max(1, count_cores() // workers)


def list_gpus() -> list[str]:
    """Lists the GPUs that this process may use, as CUDA names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return _ask_driver()
    gpus = []
    for entry in visible.split(","):
        name = entry.strip()
        # CUDA ignores entries after the first invalid one.
        if name in ("", "-1"):
            break
        gpus.append(name)
    return gpus


def _ask_driver() -> list[str]:
    """Lists GPUs without TensorFlow, which would occupy one by looking."""
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        output = subprocess.check_output(command, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that is absent or silent cannot train either
    return output.split()
