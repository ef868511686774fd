"""Workers as jobs, on programs that stand for those of SLURM (`fake_slurm`)."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import pytest

from tests.sweeps import tasks
from tests.sweeps.fake_slurm import FakeSlurm
from tests.sweeps.tasks import make_task, read_pids
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps.job_cluster import start_job_cluster
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool

Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]
SWEEP = "smoke --run_name=s --grid=depth=2,3 --seeds=2 --layerwise_every=0"


def make_options(workers: int) -> SchedulerOptions:
    return SchedulerOptions(cluster="slurm", workers=workers)


def test_keys_are_for_this_user_alone_and_go(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    place = tmp_path / "sweep"
    with start_job_cluster(make_options(1), place) as (cluster, client):
        (folder,) = place.glob("tfcomp-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        keys = list(folder.glob("*.pem"))
        assert len(keys) == 3
        assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
        script = cluster.job_script()
        assert all(str(key) in script for key in keys)
        assert "PRIVATE" not in script
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
    assert not list(place.glob("tfcomp-*"))


def test_a_place_that_jobs_cannot_name(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    place = tmp_path / "my sweep"
    with pytest.raises(ConfigError, match="--log_dir must be without spaces"):
        with start_job_cluster(make_options(1), place):
            pass
    assert not place.exists()


def test_a_disk_that_fills_up_later_is_no_matter_of_the_folder(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    options = SchedulerOptions(cluster="slurm", workers=1)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a")
    with pytest.raises(OSError) as found:
        with start_job_cluster(options, tmp_path):
            raise full
    assert found.value is full
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(RunError, match="--log_dir must be writable"):
        with start_job_cluster(options, blocked / "below"):
            pass


def test_a_cluster_that_refuses_a_job(slurm: FakeSlurm, tmp_path: Path) -> None:
    (slurm.folder / "refuse").touch()
    with Pool(make_options(2), tmp_path) as pool:
        with pytest.raises(RunError) as caught:
            list(pool.run([make_task("a", tmp_path, tasks.show_process)]))
    assert str(caught.value) == (
        "no job can be submitted: sbatch: error: invalid partition specified: "
        "nope"
    )


def test_jobs_that_never_reach_us(
    slurm: FakeSlurm, said: list[str], tmp_path: Path
) -> None:
    """As where nodes lack tfcomp: a few are tried, and it ends."""
    with dask.config.set({"jobqueue.slurm.python": "/bin/false"}):
        with Pool(make_options(1), tmp_path) as pool:
            wanted = [make_task("a", tmp_path, tasks.show_process)]
            (outcome,) = pool.run(wanted)
    assert outcome.reason == (
        "3 jobs in a row have ended before they reached this machine (their "
        "output says why)"
    )
    assert 3 <= len(slurm.list_scripts()) <= 4
    assert said[-1] == f"{outcome.reason}: giving up 1 of 1"


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


def test_trials_share_the_gpus_of_a_job(
    slurm: FakeSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait_for: Wait,
) -> None:
    """GPUs that are not there: what a trial would see of them."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,6")
    options = SchedulerOptions(
        cluster="slurm", workers=4, job_gpus=2, trials_per_gpu=2
    )
    wanted = [make_task(n, tmp_path, tasks.show_environment) for n in "abcd"]
    with Pool(options, tmp_path) as pool:
        assert all(not o.reason for o in pool.run(wanted))
    (script,) = slurm.list_scripts()
    assert "--nworkers 4" in script.read_text()
    found = [(tmp_path / f"{name}.log").read_text().split() for name in "abcd"]
    assert {word[2] for word in found} <= {"5", "6"}  # one each
    assert {word[3] for word in found} == {"true"}


def test_a_job_without_the_gpus_it_should_have(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = SchedulerOptions(cluster="slurm", workers=1, job_gpus=1)
    with Pool(options, tmp_path) as pool:
        (outcome,) = pool.run([make_task("a", tmp_path, tasks.show_process)])
    assert "sees none of the GPUs that --job_gpus asks for" in outcome.reason


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
    # Two of four were started twice; more where a job ends as it gets one.
    assert len(read_starts(there)) >= 6
    scripts = {script.suffix[1:] for script in slurm.list_scripts()}
    # The killed job is none that could be cancelled.
    assert scripts - set(slurm.list_cancelled()) <= {killed}
    assert set(slurm.list_pids()) <= {killed}
    assert not any(map(is_running, read_starts(there)))
    local = start_sweep(here, "--workers=2")
    assert "[4/4]" in local.communicate(timeout=200)[0]
    assert read_table(there) == read_table(here)


LATE = """
import logging, sys
from pathlib import Path
from tfcomp.sweeps.job_cluster import start_job_cluster
from tfcomp.sweeps.local_cluster import start_cluster
from tfcomp.sweeps.scheduler_options import SchedulerOptions

options = SchedulerOptions(cluster="slurm", workers=1)
with {start}:
    pass
for name in ("batched", "client", "gc", "comm.tcp", "scheduler"):
    logger = logging.getLogger(f"distributed.{{name}}")
    for level in (logging.INFO, logging.ERROR):
        logger.log(level, "closed", exc_info=OSError())
logging.getLogger("tornado.application").error("closed")
"""


@pytest.mark.parametrize(
    "start",
    ["start_cluster(1)", "start_job_cluster(options, Path(sys.argv[1]))"],
)
def test_what_dask_logs_after_its_cluster_has_closed(
    start: str, slurm: FakeSlurm, tmp_path: Path
) -> None:
    """Connections close in their own time, with a traceback each."""
    code = LATE.format(start=start)
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s")],
        env={**os.environ, "DASK_JOBQUEUE__SLURM__INTERFACE": "lo"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("numbers", "status"),
    [([signal.SIGINT], 130), ([signal.SIGTERM] * 2, 143)],  # as `timeout`
)
def test_jobs_are_cancelled_when_the_command_ends(
    numbers: list[int],
    status: int,
    slurm: FakeSlurm,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    sweep = start_sweep(tmp_path, *JOBS)
    wait_for(lambda: read_starts(tmp_path))
    (slurm.folder / "full").touch()
    pids = list(slurm.list_pids().values())
    for number in numbers:
        sweep.send_signal(number)
    output, _ = sweep.communicate(timeout=200)
    assert sweep.returncode == status, output
    assert "Traceback" not in output
    wait_for(lambda: not any(map(is_running, pids)))
    wait_for(lambda: not any(map(is_running, read_starts(tmp_path))))
    cancelled = {script.suffix[1:] for script in slurm.list_scripts()}
    assert set(slurm.list_cancelled()) == cancelled
    assert not list((tmp_path / "s").glob("tfcomp-*"))
