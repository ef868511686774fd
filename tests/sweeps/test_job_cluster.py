"""Workers as jobs, on programs that stand for those of SLURM (`fake_slurm`)."""

import os
import signal
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import pytest

from tests.sweeps import tasks
from tests.sweeps.fake_slurm import FakeSlurm
from tests.sweeps.fake_sweep import finish, read_starts, read_table, start_sweep
from tests.sweeps.tasks import make_task, read_pids
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps import jobs
from tfcomp.sweeps.jobs import import_slurm, start_job_cluster
from tfcomp.sweeps.scheduler_options import SchedulerOptions, describe_jobs
from tfcomp.sweeps.workload import open_pool

Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


def make_options(workers: int = 1, **flags: Any) -> SchedulerOptions:
    return SchedulerOptions(cluster="slurm", workers=workers, **flags)


def write_job(options: SchedulerOptions, folder: Path) -> list[str]:
    """The job that dask-jobqueue would submit, line by line."""
    make = import_slurm().job_cls
    job = make("tls://host:1", name="w-0", **describe_jobs(options, folder))
    return job.job_script().splitlines()


def test_jobs_ask_for_what_flags_and_files_say(tmp_path: Path) -> None:
    """Flags go before Dask's file, and the file before defaults."""
    plain = write_job(make_options(), tmp_path)
    assert {"#SBATCH --cpus-per-task=1", "#SBATCH --mem=4G"} <= set(plain)
    file = {
        "jobqueue.slurm.cores": 6,
        "jobqueue.slurm.memory": "3GiB",
        "jobqueue.slurm.python": "/opt/python",
        "jobqueue.slurm.account": "mine",
        "jobqueue.slurm.job-extra-directives": ["--exclusive"],
    }
    flags = {"job_memory": "5GiB", "job_time": "12:34:56", "job_gpus": 2}
    with dask.config.set(file):
        options = make_options(**flags, job_partition="long")
        job = write_job(options, tmp_path)
    assert {
        "#SBATCH -p long",
        "#SBATCH -A mine",
        "#SBATCH --cpus-per-task=6",
        "#SBATCH --mem=5G",
        "#SBATCH -t 12:34:56",
        "#SBATCH --gres=gpu:2",
        "#SBATCH --exclusive",
    } <= set(job)
    assert f"{tmp_path}/logs/jobs" in "\n".join(job)
    assert job[-1].startswith("exec /opt/python -m distributed.cli.dask_worker")


def test_nothing_is_written_where_jobs_cannot_be_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="--cluster needs sbatch, which this"):
        with start_job_cluster(make_options(), tmp_path / "logs"):
            pass
    assert not (tmp_path / "logs").exists()


def test_one_line_for_a_bad_flag() -> None:
    for line, flags in {
        "--workers must be given with --cluster": {"workers": 0},
        "--job_cores needs --cluster": {"cluster": "", "job_cores": 2},
        "--job_memory must be ": {"job_memory": "8GB\n#"},
        "--job_partition must be a name without": {"job_partition": "a b"},
        "--cluster must be left": {"scheduler": "tcp://a:1", "workers": 0},
    }.items():
        with pytest.raises(ConfigError, match=f"^{line}.*$"):
            SchedulerOptions(**{"workers": 4, "cluster": "slurm", **flags})


def test_keys_are_for_this_user_alone_and_go(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    place = tmp_path / "sweep"
    with start_job_cluster(make_options(1), place) as client:
        (folder,) = place.glob("tfcomp-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        keys = list(folder.glob("*.pem"))
        assert len(keys) == 3
        script = client.cluster.job_script()
        assert all(str(key) in script for key in keys)
        assert "PRIVATE" not in script
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
    assert not list(place.glob("tfcomp-*"))


def test_a_cluster_that_refuses_a_job(slurm: FakeSlurm, tmp_path: Path) -> None:
    (slurm.folder / "refuse").touch()
    with open_pool(make_options(2), tmp_path) as pool:
        with pytest.raises(RunError) as caught:
            list(pool.run([make_task("a", tmp_path, tasks.show_process)]))
    assert str(caught.value) == (
        "no job can be submitted: sbatch: error: invalid partition specified: "
        "nope"
    )


@pytest.mark.parametrize("deaths", [1, 9])
def test_jobs_that_end_before_a_trial_starts(
    deaths: int,
    slurm: FakeSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One is replaced; if all end, so does the sweep, which would wait."""
    monkeypatch.setattr(jobs, "LOST_SECONDS", 0.5)
    for number in range(deaths):
        (slurm.folder / f"death.{number}").touch()
    wanted = [  # each waits for the other to start
        make_task(n, tmp_path, tasks.wait_for_file, f"{tmp_path}/{other}.log")
        for n, other in ("ab", "ba")
    ]
    with open_pool(make_options(2), tmp_path) as pool:
        if deaths == 1:
            assert [o.reason for o in pool.run(wanted)] == [""] * 2
            return
        with pytest.raises(RunError) as caught:
            list(pool.run(wanted))
    scripts = slurm.list_scripts()
    assert len(scripts) == 4 and not read_pids(tmp_path)
    line = str(caught.value)
    assert " 4 jobs " in line and "\n" not in line
    last = f"{tmp_path}/logs/jobs/tfcomp-"
    assert any(f"{last}{s.suffix[1:]}." in line for s in scripts[-2:])


def test_as_many_jobs_as_there_is_work_for(
    slurm: FakeSlurm, tmp_path: Path, wait_for: Wait
) -> None:
    """They follow the tasks, up to --workers; those without work end."""
    release = tmp_path / "release"
    wanted = [
        make_task(name, tmp_path, tasks.wait_for_file, str(release))
        for name in "abcd"
    ]
    with open_pool(make_options(3), tmp_path) as pool:
        with ThreadPoolExecutor(1) as executor:
            ended = executor.submit(lambda: list(pool.run(wanted)))
            wait_for(lambda: len(read_pids(tmp_path)) == 3)
            assert len(slurm.list_scripts()) == 3
            release.touch()
            assert [o.reason for o in ended.result(200)] == [""] * 4
        wait_for(lambda: len(slurm.list_cancelled()) == 3)  # while it is open


def test_a_sweep_whose_jobs_are_cancelled_and_killed(
    slurm: FakeSlurm,
    undisturbed: bytes,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    """Its tables are those of a sweep on this machine; nothing is left."""
    there = tmp_path / "there"
    sweep = start_sweep(there, 2, "--cluster=slurm")
    wait_for(lambda: len(read_starts(there)) >= 2)
    told, killed = slurm.list_pids()
    subprocess.run(["scancel", told], check=True)
    os.killpg(slurm.list_pids()[killed], signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, read_starts(there)[:2])))
    output = finish(sweep)
    assert "[4/4]" in output and "failed" not in output
    # Those that did not end just before were started twice.
    assert len(read_starts(there)) > 4
    scripts = {script.suffix[1:] for script in slurm.list_scripts()}
    # The killed job is none that could be cancelled.
    assert scripts - set(slurm.list_cancelled()) <= {killed}
    assert set(slurm.list_pids()) <= {killed}
    assert not any(map(is_running, read_starts(there)))
    assert read_table(there) == undisturbed


def test_jobs_are_cancelled_when_the_command_ends(
    slurm: FakeSlurm, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    sweep = start_sweep(tmp_path, 2, "--cluster=slurm")
    wait_for(lambda: read_starts(tmp_path))
    (slurm.folder / "full").touch()
    pids = list(slurm.list_pids().values())
    for _ in range(2):  # as `timeout` does
        sweep.send_signal(signal.SIGTERM)
    assert "Traceback" not in finish(sweep, 143)
    wait_for(lambda: not any(map(is_running, pids)))
    wait_for(lambda: not any(map(is_running, read_starts(tmp_path))))
    cancelled = {script.suffix[1:] for script in slurm.list_scripts()}
    assert set(slurm.list_cancelled()) == cancelled
    assert not list((tmp_path / "s").glob("tfcomp-*"))
