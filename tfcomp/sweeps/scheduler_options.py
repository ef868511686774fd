"""Where processes of sweeps and searches run, with which cores and GPUs."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.machine import count_cores, count_memory
from tfcomp.config.settings import Settings, setting

# What dask-jobqueue cannot write into the jobs of a kind of cluster, since it
# is named by every site in its own way, or is not there.
NOT_WRITTEN = {
    "sge": ("job_cores", "job_memory", "job_gpus"),
    "htcondor": ("job_time", "job_partition"),
}
KINDS = ("slurm", "pbs", "lsf", "sge", "htcondor")
_FORMS = {
    "job_memory": (r"\d+(\.\d+)?[kMGT]i?B", "a number and a unit, as 8GB"),
    "job_time": (r"\d{1,4}:[0-5]\d:[0-5]\d", "hours:minutes:seconds"),
    "job_partition": (r"[\w.@:,+-]+", "a name without spaces"),
}
# Of a process that has imported TensorFlow.
WORKER_BYTES = 500 * 10**6
_ADDRESS = re.compile(r"(\w+://)?(\[[\da-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}")
# Every library that a trial computes with reads one of these.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


@dataclass(frozen=True)
class SchedulerOptions(Settings):
    """The flags of all commands that start processes, and of their jobs."""

    cluster: str = setting(
        "",
        "Run the workers as jobs of a cluster: slurm, pbs, lsf, sge or "
        "htcondor. What the flags below do not say is read from the "
        "configuration of dask-jobqueue (~/.config/dask/jobqueue.yaml).",
        choices=("", *KINDS),
    )
    job_cores: int = setting(
        0,
        "Cores of a job, divided among its trials. With 0 what Dask's file "
        "says, or one.",
        minimum=0,
        maximum=1024,
    )
    job_memory: str = setting(
        "", "Memory of a job, as 8GB. Left out: what Dask's file says, or 4GB."
    )
    job_time: str = setting(
        "",
        "Time limit of a job, as 12:00:00. A trial that reaches it goes on in "
        "the next job from its last checkpoint. Left out: what Dask's file "
        "says, half an hour by default.",
    )
    job_gpus: int = setting(
        0,
        "GPUs of a job, which runs --trials_per_gpu trials on each of them. "
        "With 0 it runs one trial.",
        minimum=0,
        maximum=64,
    )
    job_partition: str = setting(
        "", "Partition, or queue, of the jobs. Left out: what Dask's file says."
    )
    trials_per_gpu: int = setting(
        1,
        "Trials that share a GPU at the same time. With more than one each "
        "takes memory as it needs it, where TensorFlow else takes all.",
        minimum=1,
        maximum=64,
    )

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

    def __post_init__(self) -> None:
        super().__post_init__()
        flags = self.to_flags().items()
        asked = {n: v for n, v in flags if n.startswith("job_") and v}
        for name, value in asked.items():
            if not self.cluster:
                raise ConfigError(name, "needs --cluster", value)
            if name in NOT_WRITTEN.get(self.cluster, ()):
                rule = (
                    f"must be left out with --cluster={self.cluster}: set it "
                    "as your site names it, in Dask's jobqueue.yaml"
                )
                raise ConfigError(name, rule, value)
            form, words = _FORMS.get(name, ("", ""))
            if form and not re.fullmatch(form, value, re.ASCII):
                raise ConfigError(name, f"must be {words}", value)
        if self.cluster and self.trials_per_gpu > 1 and not self.job_gpus:
            value = self.trials_per_gpu
            raise ConfigError("trials_per_gpu", "needs --job_gpus", value)
        if self.scheduler and not _ADDRESS.fullmatch(self.scheduler):
            rule = "must be the address of a scheduler, as tcp://host:8786"
            raise ConfigError("scheduler", rule, self.scheduler)
        for name in ("cluster", "trials_per_gpu", "workers"):
            value = getattr(self, name)
            if self.scheduler and value != getattr(type(self), name):
                rule = (
                    "must be left out with --scheduler, which has its workers"
                )
                raise ConfigError(name, rule, value)
        if self.cluster and not self.workers:
            rule = "must be given with --cluster: the trials at a time"
            raise ConfigError("workers", rule, self.workers)
        most = max(1, count_memory() // WORKER_BYTES)
        if self.workers > most and not self.cluster:
            rule = f"must be at most {most}, as many as fit into the memory"
            raise ConfigError("workers", rule, self.workers)

    @property
    def trials_per_job(self) -> int:
        return max(1, self.job_gpus) * self.trials_per_gpu


def is_here(flags: Mapping[str, Any]) -> bool:
    """Whether flags let processes run on this machine."""
    return not (flags.get("scheduler") or flags.get("cluster"))


def count_threads(workers: int) -> int:
    """Threads for each of several workers, at least one."""
    return max(1, count_cores() // workers)


def pin_threads(threads: int) -> dict[str, str]:
    """Environment of a process with so many threads; 0 leaves it alone."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads)) if threads else {}


def list_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        # CUDA ignores what follows the first invalid entry, such as -1.
        stops = [i for i, name in enumerate(names) if name in ("", "-1")]
        return names[: stops[0]] if stops else names
    # TensorFlow would occupy a GPU by looking, so the driver is asked.
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that is absent or silent cannot train either
    return found.stdout.split()


def share_gpu(
    gpus: Sequence[str], number: int, trials_per_gpu: int
) -> dict[str, str]:
    """Environment of the process of a number, on a GPU of its machine."""
    # Where several share a GPU, none may take all of its memory.
    growth = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"} if trials_per_gpu > 1 else {}
    return {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)], **growth}
