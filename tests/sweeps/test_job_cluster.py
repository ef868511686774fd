"""Workers as jobs, on programs that stand for those of SLURM."""

import os
import signal
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import pytest

from tests.sweeps import tasks
from tests.sweeps.conftest import IsRunning, Wait
from tests.sweeps.fake_cluster import write_programs
from tests.sweeps.fake_sweep import (
    list_flags,
    read_starts,
    read_table,
    use_fake_trials,
)
from tests.sweeps.tasks import make_task
from tfcomp import sweep
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps import pool as pool_module
from tfcomp.sweeps.pool import (
    SchedulerOptions,
    describe_job,
    import_slurm,
    open_pool,
)


def make_options(workers: int = 1, **flags: Any) -> SchedulerOptions:
    return SchedulerOptions(
        cluster="slurm",
        workers=workers,
        **flags,
    )


def write_job(options: SchedulerOptions, folder: Path) -> list[str]:
    """The job that dask-jobqueue would submit, line by line."""
    from dask_jobqueue.slurm import SLURMJob

    job = SLURMJob(
        "tls://host:1",
        name="w-0",
        **describe_job(options, folder),
    )
    return job.job_script().splitlines()


def test_jobs_ask_for_what_flags_and_files_say(tmp_path: Path):
    """Dask's file has what flags leave out."""
    plain = write_job(make_options(), tmp_path)
    assert {"#SBATCH --cpus-per-task=1", "#SBATCH --mem=4G"} <= set(plain)
    file = {
        "jobqueue.slurm.account": "mine",
        "jobqueue.slurm.walltime": "12:34:56",
        "jobqueue.slurm.job-extra-directives": ["--exclusive"],
        "jobqueue.slurm.job-script-prologue": ["module load cuda"],
    }
    options = make_options(
        job_cores=6,
        job_memory="5GiB",
        job_gpus=2,
        job_partition="long",
    )
    with dask.config.set(file):
        job = write_job(options, tmp_path)
    assert {
        "#SBATCH -p long",
        "#SBATCH -A mine",
        "#SBATCH --cpus-per-task=6",
        "#SBATCH --mem=5G",
        "#SBATCH -t 12:34:56",
        "#SBATCH --gres=gpu:2",
        "#SBATCH --exclusive",
        "module load cuda",
    } <= set(job)
    assert f"{tmp_path}/logs/jobs" in "\n".join(job)
    assert job[-1].startswith("exec ")


def test_nothing_is_written_where_jobs_cannot_be_submitted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="sbatch"):
        run_task_in_job(make_options(), tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("workers", {"cluster": "slurm"}),
        ("cluster", {"cluster": "pbs", "workers": 2}),
        ("scheduler", {"scheduler": "tcp://a:1", "workers": 2}),
        ("scheduler", {"scheduler": "nowhere"}),
    ],
)
def test_one_line_for_a_bad_flag(name: str, flags: dict[str, Any]):
    with pytest.raises(ConfigError, match=f"^--{name} .*$"):
        SchedulerOptions(**flags)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a cluster, which the search path leads to."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    programs = write_programs(folder)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    import_slurm()  # its settings, before the one below
    with dask.config.set({"jobqueue.slurm.interface": "lo"}):
        yield folder


def run_task_in_job(options: SchedulerOptions, folder: Path):
    with open_pool(options, folder) as pool:
        list(pool.run([make_task("a", folder, tasks.show_process)]))


@pytest.mark.parametrize(
    ("problem", "words"),
    [("refuse", "invalid partition"), ("broken", "logs/jobs")],
)
def test_jobs_that_do_not_start(
    problem: str,
    words: str,
    slurm: Path,
    tmp_path: Path,
):
    (slurm / problem).touch()
    with pytest.raises(RunError, match=words) as caught:
        run_task_in_job(make_options(job_wait=1), tmp_path)
    assert "\n" not in str(caught.value)


def check_keys(folder: Path, script: str):
    """They are for this user alone, and the job knows their files."""
    (private,) = folder.glob("tfcomp-*")
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    keys = list(private.glob("*.pem"))
    assert len(keys) == 3
    assert all(str(key) in script for key in keys)
    assert "PRIVATE" not in script


def test_a_sweep_in_jobs(
    slurm: Path,
    undisturbed: bytes,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
    monkeypatch: pytest.MonkeyPatch,
):
    """A job that is killed is replaced; the tables are the same as here."""
    use_fake_trials(monkeypatch)
    monkeypatch.setattr(pool_module, "SCALE_SECONDS", 0.2)
    monkeypatch.setenv("FAKE_SECONDS", "1.5")
    soon = {"distributed.deploy.lost-worker-timeout": "300ms"}

    def kill_a_job():
        wait_for(lambda: read_starts(tmp_path))
        script, _ = slurm.glob("script.*")  # of two jobs
        check_keys(tmp_path / "s", script.read_text())
        first = read_starts(tmp_path)[0]
        os.killpg(os.getpgid(first), signal.SIGKILL)

    with dask.config.set(soon), ThreadPoolExecutor(1) as executor:
        killed = executor.submit(kill_a_job)
        command = ["sweep", *list_flags(tmp_path), "--cluster=slurm"]
        assert sweep.main(command) == 0
        killed.result()

    starts = read_starts(tmp_path)
    assert len(starts) == 5
    assert len(list(slurm.glob("script.*"))) > 2
    assert read_table(tmp_path) == undisturbed
    wait_for(lambda: not any(map(is_running, starts)))
    assert not list((tmp_path / "s").glob("tfcomp-*"))
