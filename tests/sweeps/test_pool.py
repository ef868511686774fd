"""Tasks on Dask: lost workers, foreign schedulers, ends of all kinds."""

import contextlib
import logging
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Client, LocalCluster

from tests.sweeps import tasks
from tests.sweeps.conftest import IsRunning, Wait
from tests.sweeps.fake_sweep import (
    list_flags,
    read_starts,
    read_table,
    use_fake_trials,
)
from tests.sweeps.fake_trial import DEADLY
from tests.sweeps.tasks import make_task, read_pids
from tfcomp import sweep
from tfcomp.config.errors import ConfigError
from tfcomp.config.hashes import compute_code_version
from tfcomp.sweeps import pool as pool_module
from tfcomp.sweeps.pool import Outcome, Pool, SchedulerOptions, open_pool
from tfcomp.sweeps.worker_task import Setup, Task, run_task


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Two workers on a machine with GPUs, one of them given twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_module, "list_gpus", lambda: [*"464"])
        with open_pool(SchedulerOptions(workers=2, threads=3)) as pool:
            yield pool


def test_a_worker_for_each_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool_module, "list_gpus", lambda: ["0", "1"])
    start = contextlib.nullcontext
    monkeypatch.setattr(pool_module, "start_local_cluster", start)
    with open_pool(SchedulerOptions()) as pool:
        assert pool.workers == 2
    with pytest.raises(ConfigError, match="--workers"):
        with open_pool(SchedulerOptions(workers=3)):
            pass


def test_environment_of_a_task(pool: Pool, tmp_path: Path):
    """One trial runs on each GPU, or several that share its memory."""
    names = (
        "CUDA_VISIBLE_DEVICES",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "OMP_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
    )
    show = tasks.show_environment
    wanted = [make_task(name, tmp_path, show, *names) for name in "ab"]
    assert [outcome.reason for outcome in pool.run(wanted)] == [""] * 2
    outputs = [(tmp_path / f"{n}.log").read_text().split() for n in "ab"]
    rest = ["3", "3", os.getcwd()]
    alone = ["6", "-", *rest]
    shared = ["4", "true", *rest]
    assert sorted(outputs) == [shared, alone]


def test_others_on_the_machine_are_kept_out(pool: Pool):
    address = pool.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    with pytest.raises(OSError):
        Client(address.replace("tls://", "tcp://"), timeout=0.5)


def read_pages(port: int) -> list[str]:
    """Pages that a port shows to any client."""
    pages = []
    for page in ("", "status", "info/main/workers.html", "metrics", "health"):
        with contextlib.suppress(OSError):
            address = f"http://127.0.0.1:{port}/{page}"
            urllib.request.urlopen(address, timeout=10)
            pages.append(page)
    return pages


def test_ports_are_local_and_tell_nothing(pool: Pool):
    me = psutil.Process()
    ports = []
    for process in (me, *me.children(recursive=True)):
        for connection in process.net_connections():
            if connection.status == psutil.CONN_LISTEN:
                ports.append(connection.laddr)
    assert {port.ip for port in ports} == {"127.0.0.1"}
    assert not [page for p in ports for page in read_pages(p.port)]


def test_a_batch_that_is_left_early_stops(
    pool: Pool,
    tmp_path: Path,
    wait_for: Wait,
):
    """Its tasks end after their epoch, and others are never begun."""
    quick = make_task("quick", tmp_path / "quick", tasks.show_process)
    end = tasks.wait_for_file, str(tmp_path / "release")
    first, *others = (make_task(name, tmp_path, *end) for name in "abc")
    outcomes = pool.run([first, quick, *others])
    assert next(outcomes).name == "quick"
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    outcomes.close()
    (outcome,) = pool.run([quick])  # on a worker that is free again
    assert outcome.reason == ""
    assert len(read_pids(tmp_path)) == 2


def test_a_trial_that_kills_its_worker(
    pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
):
    """It fails, without the others, and the next start runs it again."""
    monkeypatch.setattr(pool_module, "MAX_DEATHS", 2)
    use_fake_trials(monkeypatch, pool)
    command = ["sweep", *list_flags(tmp_path), "--seeds=1"]
    deadly = tmp_path / DEADLY
    deadly.write_text("3")

    assert sweep.main(command) == 1

    printed = capsys.readouterr()
    assert "its worker died 2 times" in printed.out
    assert "its worker died 2 times" in printed.err
    table = read_table(tmp_path)
    assert table.count(b"finished") == 1
    assert table.count(b"failed") == 1

    deadly.unlink()
    assert sweep.main(command) == 0
    assert len(read_starts(tmp_path)) == 1 + 2 + 1
    assert read_table(tmp_path).count(b"finished") == 2


@pytest.fixture
def remote() -> Iterator[str]:
    """The address of a scheduler that is not ours, and lives on."""
    with LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster.scheduler_address


def run_tasks(wanted: list[Task], options: SchedulerOptions) -> list[Outcome]:
    with open_pool(options) as pool:
        return list(pool.run(wanted))


def test_a_remote_scheduler(
    remote: str,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
):
    """Its worker runs one task at a time, and stops one of a lost client."""
    options = SchedulerOptions(scheduler=remote)
    folder = tmp_path / "first"
    wanted = [make_task(n, folder, tasks.show_process) for n in "ab"]
    assert [o.reason for o in run_tasks(wanted, options)] == ["", ""]
    (worker,) = set(read_pids(folder))
    never = str(tmp_path / "never")
    endless = make_task("endless", tmp_path, tasks.wait_for_file, never)
    setup = Setup(os.getcwd(), compute_code_version())
    with Client(remote) as client:
        future = client.submit(run_task, endless, setup)
        wait_for(lambda: read_pids(tmp_path))
    assert future.cancelled()
    assert [o.reason for o in run_tasks(wanted[:1], options)] == [""]
    assert set(read_pids(tmp_path)) == {worker}
    assert is_running(worker)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://h:1"])
def test_no_scheduler_at_the_address(
    address: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(pool_module, "CONNECT_SECONDS", 0.2)
    with pytest.raises(ConfigError, match="--scheduler"):
        run_tasks([], SchedulerOptions(scheduler=address))
