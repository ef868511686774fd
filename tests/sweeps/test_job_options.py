"""The flags of jobs, and the jobs that each kind of cluster would be given.

Of the five kinds only SLURM was ever run (`test_slurm`); what stands in the
jobs of the others is compared with their manuals' options.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.sweeps import job_cluster
from tfcomp.sweeps.job_cluster import (
    CLASSES,
    LISTS,
    check_cluster,
    count_job_threads,
    describe_jobs,
    import_cluster,
)
from tfcomp.sweeps.scheduler_options import KINDS, SchedulerOptions

import_cluster("slurm")  # its own settings, before tests make theirs
ASKED = {
    "job_cores": 4,
    "job_memory": "8GiB",
    "job_time": "12:34:56",
    "job_gpus": 2,
    "job_partition": "long",
}
# What a job must say, and what cannot be asked for by a flag.
SAID: dict[str, tuple[set[str], set[str]]] = {
    "slurm": (
        {
            "#SBATCH -p long",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --mem=8G",
            "#SBATCH -t 12:34:56",
            "#SBATCH --gres=gpu:2",
        },
        set(),
    ),
    "pbs": (
        {
            "#PBS -q long",
            "#PBS -l select=1:ncpus=4:mem=8192MB:ngpus=2",
            "#PBS -l walltime=12:34:56",
        },
        set(),
    ),
    "lsf": (
        {
            "#BSUB -q long",
            "#BSUB -n 4",
            '#BSUB -R "span[hosts=1]"',
            "#BSUB -M 8589935",  # kB
            "#BSUB -W 12:35",  # a minute begun is a minute
            "#BSUB -gpu num=2",
        },
        set(),
    ),
    "sge": (
        {"#$ -q long", "#$ -l h_rt=12:34:56"},
        {"job_cores", "job_memory", "job_gpus"},
    ),
    "htcondor": (
        {
            "RequestCpus = MY.DaskWorkerCores",
            "MY.DaskWorkerCores = 4",
            "MY.DaskWorkerMemory = 8589934592",
            "request_gpus = 2",
        },
        {"job_time", "job_partition"},
    ),
}


def make_options(kind: str = "slurm", **flags: Any) -> SchedulerOptions:
    return SchedulerOptions(**{"workers": 4, "cluster": kind, **flags})


def write_job(options: SchedulerOptions, folder: Path) -> list[str]:
    """The job that dask-jobqueue would submit, line by line."""
    make = import_cluster(options.cluster).job_cls
    job = make("tls://host:1", name="w-0", **describe_jobs(options, folder))
    return job.job_script().splitlines()


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_say_what_flags_ask_for(kind: str, tmp_path: Path) -> None:
    lines, left_out = SAID[kind]
    asked = {n: v for n, v in ASKED.items() if n not in left_out}
    options = make_options(kind, **asked, trials_per_gpu=1)
    job = write_job(options, tmp_path)
    assert lines <= set(job)
    assert f"{tmp_path}/logs/jobs" in "\n".join(job)
    trials = 1 if "job_gpus" in left_out else 2
    worker = f"exec {sys.executable} -m tfcomp.sweeps.job_worker tls://host:1"
    (start,) = [line for line in job if worker in line]
    assert f"--nworkers {trials} --nthreads 1 --memory-limit 0" in start


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kind_cannot_be_asked_for(kind: str) -> None:
    for name in SAID[kind][1]:
        with pytest.raises(ConfigError, match=rf"--{name} must be left out"):
            make_options(kind, **{name: ASKED[name]})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_known_everywhere(kind: str) -> None:
    assert kind in CLASSES and kind in LISTS and kind in SAID
    assert import_cluster(kind).job_cls.config_name == kind


def test_flags_go_before_the_file_and_the_file_before_defaults(
    tmp_path: Path,
) -> None:
    file = {
        "jobqueue.slurm.cores": 6,
        "jobqueue.slurm.memory": "3GiB",
        "jobqueue.slurm.queue": "short",
        "jobqueue.slurm.python": "/opt/python",
        "jobqueue.slurm.account": "mine",
        "jobqueue.slurm.job-extra-directives": ["--exclusive"],
    }
    plain = write_job(make_options(), tmp_path)
    assert {"#SBATCH --cpus-per-task=1", "#SBATCH --mem=4G"} <= set(plain)
    with dask.config.set(file):
        options = make_options(job_memory="5GiB", job_gpus=1)
        job = write_job(options, tmp_path)
        assert count_job_threads(options) == 6
    assert {
        "#SBATCH --cpus-per-task=6",
        "#SBATCH --mem=5G",
        "#SBATCH -p short",
        "#SBATCH -A mine",
        "#SBATCH --exclusive",
        "#SBATCH --gres=gpu:1",
    } <= set(job)
    assert job[-1].startswith("exec /opt/python -m tfcomp.sweeps.job_worker")


def test_cores_are_divided_among_the_trials_of_a_job() -> None:
    shared = {"job_gpus": 2, "trials_per_gpu": 3}
    assert make_options(**shared).trials_per_job == 6
    assert count_job_threads(make_options(**shared, job_cores=13)) == 2
    assert count_job_threads(make_options(**shared, job_cores=2)) == 1
    assert count_job_threads(make_options(job_cores=13)) == 13


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"cluster": "nope"}, "--cluster must be one of: "),
        ({"workers": 0}, "--workers must be given with --cluster"),
        (
            {"scheduler": "tcp://a:1", "workers": 0},
            "--cluster must be left out",
        ),
        ({"cluster": "", "job_cores": 2}, "--job_cores needs --cluster"),
        ({"cluster": "", "job_time": "1:00:00"}, "--job_time needs --cluster"),
        ({"job_time": "1h"}, "--job_time must be hours:minutes:seconds"),
        ({"job_time": "0:99:00"}, "--job_time must be hours:minutes:seconds"),
        ({"job_memory": "8"}, "--job_memory must be a number and a unit"),
        ({"job_memory": "8GB\n#"}, "--job_memory must be "),
        ({"job_partition": "a b"}, "--job_partition must be a name without"),
        ({"job_cores": -1}, "--job_cores must be at least 0"),
        ({"trials_per_gpu": 2}, "--trials_per_gpu needs --job_gpus"),
        ({"trials_per_gpu": 0}, "--trials_per_gpu must be at least 1"),
    ],
)
def test_one_line_for_a_bad_flag(flags: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_options(**flags)
    assert str(caught.value).startswith(line)
    assert len(str(caught.value).splitlines()) == 1


def test_this_machine_does_not_limit_the_workers_of_a_cluster() -> None:
    assert make_options(workers=1000).workers == 1000


def test_what_a_machine_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="--cluster needs sbatch, which"):
        check_cluster("slurm")
    monkeypatch.setattr(job_cluster.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs dask-jobqueue: pip install"):
        check_cluster("slurm")


def test_nothing_is_written_where_jobs_cannot_be_submitted(
    tmp_path: Path,
) -> None:
    command = "-m tfcomp sweep sweep_smoke --cluster=slurm --workers=2".split()
    done = subprocess.run(
        [sys.executable, *command, f"--log_dir={tmp_path}/logs"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: --cluster needs sbatch, which this machine does not have, got "
        "'slurm'\n"
    )
    assert not (tmp_path / "logs").exists()
