"""The flags of jobs: what a cluster is asked for, by `--cluster=slurm`."""

import re
from dataclasses import dataclass

from tfcomp.config.errors import ConfigError
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


@dataclass(frozen=True)
class JobOptions(Settings):
    """The flags of the jobs in which workers run."""

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

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = [n for n in self.to_flags() if n.startswith("job_")]
        for name in asked:
            value = getattr(self, name)
            if not value:
                continue
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
            raise ConfigError(
                "trials_per_gpu", "needs --job_gpus", self.trials_per_gpu
            )

    @property
    def trials_per_job(self) -> int:
        """How many trials a job runs at a time."""
        return max(1, self.job_gpus) * self.trials_per_gpu
