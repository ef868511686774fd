"""Flags of the place where trials and searches run; cores and GPUs."""

import itertools
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import Settings, non_negative, setting

Item = TypeVar("Item")

_FORMS = {
    "scheduler": (
        r"(\w+://)?(\[[\da-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}",
        "the address of a scheduler, as tcp://host:8786",
    ),
    "shard": (r"[1-9]\d{0,5}/[1-9]\d{0,5}", "a part of all parts, as 2/3"),
}


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
        "Run trials in jobs of SLURM. What the flags below leave out is read "
        "from the configuration of dask-jobqueue "
        "(~/.config/dask/jobqueue.yaml).",
        choices=("", "slurm"),
    )
    job_cores: int = setting(
        1,
        "Cores of a job.",
        minimum=1,
        maximum=1024,
    )
    job_memory: str = setting("4GB", "Memory of a job.")
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
    job_wait: int = setting(
        3600, "Seconds that the first job may wait for its start.", minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (form, words) in _FORMS.items():
            value = getattr(self, name)
            if value and not re.fullmatch(form, value, re.ASCII):
                raise ConfigError(name, f"must be {words}", value)
        if self.shard:
            number, count = map(int, self.shard.split("/"))
            if number > count:
                rule = "must name a part up to the number of parts, as 2/3"
                raise ConfigError("shard", rule, self.shard)
        if self.scheduler and (self.cluster or self.workers):
            rule = "has workers: --cluster and --workers must be left out"
            raise ConfigError("scheduler", rule, self.scheduler)
        if self.cluster and not self.workers:
            rule = "must be given with --cluster: the trials at a time"
            raise ConfigError("workers", rule, self.workers)

    def select_shard(self, items: Sequence[Item]) -> Sequence[Item]:
        """Selects every n-th item, from the k-th; all without `--shard=k/n`.

        Parts do not depend on what is finished, so they stay disjoint.

        Args:
            items: All trials or searches, in the order of the command.
        """
        if not self.shard:
            return items
        number, count = map(int, self.shard.split("/"))
        return items[number - 1 :: count]


def is_here(flags: Mapping[str, Any]) -> bool:
    """Checks whether trials run on this machine."""
    return not (flags.get("scheduler") or flags.get("cluster"))


def list_gpus() -> list[str]:
    """Lists the GPUs that this process may use, as CUDA names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = map(str.strip, visible.split(","))
        # CUDA ignores entries after the first invalid one.
        return [*itertools.takewhile(lambda n: n not in ("", "-1"), names)]

    # TensorFlow would occupy one by looking.
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        output = subprocess.check_output(
            command,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that is absent or silent cannot train either
    return output.split()
