"""Where the processes of a sweep or of a threshold search run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.machine import count_memory
from tfcomp.config.settings import setting
from tfcomp.sweeps.job_options import JobOptions

# Of a process that has imported TensorFlow.
WORKER_BYTES = 500 * 10**6
_ADDRESS = re.compile(r"(\w+://)?(\[[\da-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}")
# What is up to whoever has started the workers of a scheduler.
_OWN = ("workers", "cluster", "trials_per_gpu")


@dataclass(frozen=True)
class SchedulerOptions(JobOptions):
    """The flags of all commands that start processes."""

    workers: int = setting(
        0,
        "How many processes run at the same time: on this machine or, with "
        "--cluster, in all jobs together. With 0 there is one for each GPU of "
        "this machine (or --trials_per_gpu), or a single one without GPUs.",
        minimum=0,
        maximum=10**4,
    )
    scheduler: str = setting(
        "",
        "Address of a running Dask scheduler, as tcp://host:8786, whose "
        "workers see the same folders as this machine. Without it, workers "
        "are started on this machine.",
    )
    threads: int = setting(
        0,
        "How many threads each process computes with. With 0 the cores of "
        "this machine are divided among its workers (with --scheduler the "
        "environment of the workers decides), and a small network has one.",
        minimum=0,
        maximum=1024,
    )
    # A worker starts within seconds, or half a minute on a busy machine;
    # whoever starts workers as jobs himself asks for more.
    worker_timeout: int = setting(
        300,
        "Seconds without a single worker, or job that waits in the queue, "
        "after which the command gives up what is left and ends with what it "
        "has. With 0 it waits for ever.",
        minimum=0,
    )
    isolate: bool = setting(
        False,
        "Give every trial a process of its own, which is slower. Otherwise a "
        "worker runs trial after trial in one process, with the same numbers.",
    )
    # GPUs of this machine, one process to each; None finds them. With a
    # scheduler, whoever starts its workers assigns GPUs.
    gpus: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheduler and not _ADDRESS.fullmatch(self.scheduler):
            rule = "must be the address of a scheduler, as tcp://host:8786"
            raise ConfigError("scheduler", rule, self.scheduler)
        for field in self.list_settings() if self.scheduler else ():
            value = getattr(self, field.name)
            if field.name in _OWN and value != field.default:
                rule = (
                    "must be left out with --scheduler, which has its workers"
                )
                raise ConfigError(field.name, rule, value)
        if self.cluster and not self.workers:
            rule = "must be given with --cluster: the trials at a time"
            raise ConfigError("workers", rule, self.workers)
        most = max(1, count_memory() // WORKER_BYTES)
        if self.workers > most and not self.cluster:
            rule = f"must be at most {most}, as many as fit into the memory"
            raise ConfigError("workers", rule, self.workers)


def is_here(flags: Mapping[str, Any]) -> bool:
    """Whether flags let processes run on this machine."""
    return not (flags.get("scheduler") or flags.get("cluster"))
