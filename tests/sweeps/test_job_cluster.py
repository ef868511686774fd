"""Workers as jobs, on programs that stand for those of SLURM (`fake_slurm`)."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import pytest

from tests.sweeps import tasks
from tests.sweeps.fake_slurm import FakeSlurm
from tests.sweeps.tasks import make_task, read_pids
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps.clusters import import_slurm, start_job_cluster
from tfcomp.sweeps.scheduler_options import (
    SchedulerOptions,
    count_job_threads,
    describe_jobs,
)
from tfcomp.sweeps.scheduling import Pool

Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]
SWEEP = "smoke --run_name=s --grid=depth=2,3 --seeds=2 --layerwise_every=0"


def make_options(workers: int = 1, **flags: Any) -> SchedulerOptions:
    return SchedulerOptions(cluster="slurm", workers=workers, **flags)


def write_job(options: SchedulerOptions, folder: Path) -> list[str]:
    """The job that dask-jobqueue would submit, line by line."""
    make = import_slurm().job_cls
    job = make("tls://host:1", name="w-0", **describe_jobs(options, folder))
    return job.job_script().splitlines()


def test_jobs_ask_for_what_flags_say(tmp_path: Path) -> None:
    flags = {"job_cores": 4, "job_memory": "8GiB", "job_time": "12:34:56"}
    options = make_options(**flags, job_gpus=2, job_partition="long")
    job = write_job(options, tmp_path)
    assert {
        "#SBATCH -p long",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --mem=8G",
        "#SBATCH -t 12:34:56",
        "#SBATCH --gres=gpu:2",
    } <= set(job)
    assert f"{tmp_path}/logs/jobs" in "\n".join(job)
    assert count_job_threads(options) == 4


def test_flags_go_before_the_file_and_the_file_before_defaults(
    tmp_path: Path,
) -> None:
    plain = write_job(make_options(), tmp_path)
    assert {"#SBATCH --cpus-per-task=1", "#SBATCH --mem=4G"} <= set(plain)
    file = {
        "jobqueue.slurm.cores": 6,
        "jobqueue.slurm.memory": "3GiB",
        "jobqueue.slurm.python": "/opt/python",
        "jobqueue.slurm.account": "mine",
        "jobqueue.slurm.job-extra-directives": ["--exclusive"],
    }
    with dask.config.set(file):
        options = make_options(job_memory="5GiB", job_gpus=1)
        job = write_job(options, tmp_path)
        assert count_job_threads(options) == 6
    assert {
        "#SBATCH --cpus-per-task=6",
        "#SBATCH --mem=5G",
        "#SBATCH -A mine",
        "#SBATCH --exclusive",
        "#SBATCH --gres=gpu:1",
    } <= set(job)
    assert job[-1].startswith("exec /opt/python -m distributed.cli.dask_worker")


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
        ({"job_time": "0:99:00"}, "--job_time must be hours:minutes:seconds"),
        ({"job_memory": "8GB\n#"}, "--job_memory must be "),
        ({"job_partition": "a b"}, "--job_partition must be a name without"),
    ],
)
def test_one_line_for_a_bad_flag(flags: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SchedulerOptions(**{"workers": 4, "cluster": "slurm", **flags})
    assert str(caught.value).startswith(line)
    assert len(str(caught.value).splitlines()) == 1


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
    with Pool(make_options(2), tmp_path) as pool:
        with pytest.raises(RunError) as caught:
            list(pool.run([make_task("a", tmp_path, tasks.show_process)]))
    assert str(caught.value) == (
        "no job can be submitted: sbatch: error: invalid partition specified: "
        "nope"
    )


def test_as_many_jobs_as_there_is_work_for(
    slurm: FakeSlurm, tmp_path: Path, wait_for: Wait
) -> None:
    """They follow the tasks, up to --workers; those without work end."""
    release = tmp_path / "release"
    wanted = [
        make_task(name, tmp_path, tasks.wait_for_file, str(release))
        for name in "abcd"
    ]
    with Pool(make_options(3), tmp_path) as pool:
        with ThreadPoolExecutor(1) as executor:
            ended = executor.submit(lambda: list(pool.run(wanted)))
            wait_for(lambda: len(read_pids(tmp_path)) == 3)
            assert len(slurm.list_scripts()) == 3
            release.touch()
            assert [o.reason for o in ended.result(200)] == [""] * 4
        wait_for(lambda: len(slurm.list_cancelled()) == 3)  # while it is open


def start_sweep(folder: Path, *flags: str) -> subprocess.Popen:
    """A sweep of four fake trials of two seconds each."""
    interface = {"DASK_JOBQUEUE__SLURM__INTERFACE": "lo"}
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.sweeps.fake_sweep",
            *SWEEP.split(),
            f"--log_dir={folder}",
            *flags,
        ],
        env={**os.environ, "FAKE_SECONDS": "2", **interface},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_starts(folder: Path) -> list[int]:
    """Processes of trials, in the order of their starts."""
    file = folder / "s" / "starts.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [int(line.split()[0]) for line in lines]


def read_table(folder: Path) -> bytes:
    return (folder / "s" / "trials.csv").read_bytes()


JOBS = ("--cluster=slurm", "--workers=2")


def test_a_sweep_whose_jobs_are_cancelled_and_killed(
    slurm: FakeSlurm, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    """Its tables are those of a sweep on this machine; nothing is left."""
    here, there = tmp_path / "here", tmp_path / "there"
    sweep = start_sweep(there, *JOBS)
    wait_for(lambda: len(read_starts(there)) >= 2)
    told, killed = slurm.list_pids()
    subprocess.run(["scancel", told], check=True)
    os.killpg(slurm.list_pids()[killed], signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, read_starts(there)[:2])))
    output, _ = sweep.communicate(timeout=200)
    assert sweep.returncode == 0, output
    assert "[4/4]" in output and "failed" not in output
    # Those that did not end just before were started twice.
    assert len(read_starts(there)) > 4
    scripts = {script.suffix[1:] for script in slurm.list_scripts()}
    # The killed job is none that could be cancelled.
    assert scripts - set(slurm.list_cancelled()) <= {killed}
    assert set(slurm.list_pids()) <= {killed}
    assert not any(map(is_running, read_starts(there)))
    local = start_sweep(here, "--workers=2")
    assert "[4/4]" in local.communicate(timeout=200)[0]
    assert read_table(there) == read_table(here)


def test_jobs_are_cancelled_when_the_command_ends(
    slurm: FakeSlurm, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    sweep = start_sweep(tmp_path, *JOBS)
    wait_for(lambda: read_starts(tmp_path))
    (slurm.folder / "full").touch()
    pids = list(slurm.list_pids().values())
    for _ in range(2):  # as `timeout` does
        sweep.send_signal(signal.SIGTERM)
    output, _ = sweep.communicate(timeout=200)
    assert sweep.returncode == 143, output
    assert "Traceback" not in output
    wait_for(lambda: not any(map(is_running, pids)))
    wait_for(lambda: not any(map(is_running, read_starts(tmp_path))))
    cancelled = {script.suffix[1:] for script in slurm.list_scripts()}
    assert set(slurm.list_cancelled()) == cancelled
    assert not list((tmp_path / "s").glob("tfcomp-*"))
