"""Tasks on Dask: lost workers, foreign schedulers, ends of all kinds."""

import logging
import multiprocessing.spawn
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import distributed
import psutil
import pytest
from distributed import Client, LocalCluster

from tests.sweeps import tasks
from tests.sweeps.tasks import make_task, read_pids
from tfcomp.config.errors import ConfigError
from tfcomp.sweeps import scheduling
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Outcome, Pool, Task, check_scheduler

PATIENCE = 200  # seconds, for a machine that is busy
Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of pools; workers are counted often enough to notice."""
    lines: list[str] = []
    monkeypatch.setattr(scheduling, "_COUNT_SECONDS", 0.1)
    monkeypatch.setattr(scheduling, "say", lines.append)
    return lines


@pytest.fixture
def pool(said: list[str]) -> Iterator[Pool]:
    """A pool of a user whose Dask is impatient."""
    options = SchedulerOptions(workers=2, worker_timeout=2)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "100ms"}):
        with Pool(options) as pool:
            yield pool


@pytest.fixture
def run_aside() -> Iterator[Callable[..., Future]]:
    """Waits for outcomes in a thread; the result is their list."""
    with ThreadPoolExecutor(1) as executor:
        yield lambda outcomes: executor.submit(list, outcomes)


def make_endless(folder: Path, names: str) -> list[Task]:
    release = str(folder / "release")
    return [
        make_task(name, folder, tasks.wait_for_file, release) for name in names
    ]


def start_script(folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.sweeps.tasks", str(folder), *arguments],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("gpus", "flags", "line"),
    [
        ("", {"trials_per_gpu": 2}, "--trials_per_gpu must be 1 on a"),
        ("0", {"workers": 2}, "--workers must be at most 1,"),
        (
            "01",
            {"workers": 7, "trials_per_gpu": 3},
            "--workers must be at most 6,",
        ),
    ],
)
def test_more_trials_than_gpus_hold(
    gpus: str, flags: dict[str, Any], line: str, monkeypatch
) -> None:
    monkeypatch.setattr(scheduling, "list_gpus", lambda: list(gpus))
    with pytest.raises(ConfigError, match=line):
        with Pool(SchedulerOptions(**flags)):
            pass


def test_a_killed_worker_is_replaced_and_its_task_repeated(
    pool: Pool,
    said: list[str],
    run_aside: Callable[..., Future],
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    outcomes = run_aside(pool.run(make_endless(tmp_path, "abc")))
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    before = read_pids(tmp_path)
    os.kill(before[0], signal.SIGKILL)
    wait_for(lambda: len(read_pids(tmp_path)) == 3)
    assert is_running(before[1])
    wait_for(lambda: len(said) == 2)
    (tmp_path / "release").touch()
    ended = outcomes.result(PATIENCE)
    assert {(o.name, o.reason) for o in ended} == {(n, "") for n in "abc"}
    assert said == ["1 worker now, 2 before", "2 workers now, 1 before"]


def test_a_task_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deadly"
    deadly = make_task("deadly", folder, tasks.die)
    quick = [make_task(n, tmp_path, tasks.show_process) for n in "abcdef"]
    ended = run_tasks([deadly, *quick], SchedulerOptions(workers=2))
    outcomes = {outcome.name: outcome.reason for outcome in ended}
    assert outcomes.pop("deadly") == "its worker died 4 times (see its log)"
    assert outcomes == dict.fromkeys("abcdef", "")
    assert len(read_pids(folder)) == 4


def test_a_worker_that_dask_gives_up(
    pool: Pool,
    said: list[str],
    run_aside: Callable[..., Future],
    tmp_path: Path,
    wait_for: Wait,
) -> None:
    cluster = pool._client.cluster
    cluster.sync(cluster.workers[0].close, callback_timeout=PATIENCE)
    outcomes = run_aside(pool.run(make_endless(tmp_path, "ab")))
    wait_for(lambda: len(read_pids(tmp_path)) == 2)  # at the same time
    assert said == ["1 worker now, 2 before", "2 workers now, 1 before"]
    (tmp_path / "release").touch()
    assert [o.reason for o in outcomes.result(PATIENCE)] == ["", ""]


def test_no_worker_comes_back(
    pool: Pool,
    said: list[str],
    run_aside: Callable[..., Future],
    tmp_path: Path,
    wait_for: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rest = run_aside(pool.run(make_endless(tmp_path, "ab")))
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", "/bin/false")
    for pid in read_pids(tmp_path):
        os.kill(pid, signal.SIGKILL)
    reason = "no worker for 2 s (--worker_timeout)"
    found = [(o.name, o.reason) for o in rest.result(PATIENCE)]
    assert found == [("a", reason), ("b", reason)]
    assert said[-1] == f"{reason}: giving up 2 of 2"


def test_a_wait_for_a_first_worker_is_told(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "_START_SECONDS", -1)
    pool = Pool(SchedulerOptions(worker_timeout=1, scheduler="tcp://h:1"))
    monkeypatch.setattr(pool, "_count_workers", lambda: 0)
    assert not list(pool._wait(queue.SimpleQueue(), {object(): "a"}, lambda: 1))
    assert said == ["no worker for 0 s, waiting (--worker_timeout)"]


def test_dask_knows_a_task_for_each_worker(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To forget 10,000 tasks takes Dask more than a minute."""
    handed, submit = [], pool._client.submit

    def note(*arguments: object, **options: Any) -> Future:
        handed.append(options["key"][1])
        return submit(*arguments, **options)

    monkeypatch.setattr(pool._client, "submit", note)
    names = [str(n) for n in range(9)]
    wanted = [make_task(n, tmp_path, tasks.show_process) for n in names]
    for number, outcome in enumerate(pool.run(wanted), 1):
        assert outcome.reason == "" and len(handed) <= number + 2
    assert (handed, number) == (names, 9)


def test_an_outcome_that_is_lost_with_its_worker(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for it must not keep the pool from counting workers."""
    fetch, timeouts = distributed.Future.result, []

    def lose_first(future: distributed.Future, timeout: float | None) -> tuple:
        timeouts.append(timeout)
        if len(timeouts) == 1:
            raise TimeoutError
        return fetch(future, timeout)

    monkeypatch.setattr(distributed.Future, "result", lose_first)
    (outcome,) = pool.run([make_task("a", tmp_path, tasks.show_process)])
    assert outcome.reason == "" and len(timeouts) == 2 and None not in timeouts


def test_others_on_the_machine_are_kept_out(pool: Pool) -> None:
    address = pool._client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    with pytest.raises(OSError):
        Client(address.replace("tls://", "tcp://"), timeout=2)


def test_a_batch_that_is_left_early_stops(
    pool: Pool, tmp_path: Path, wait_for: Wait
) -> None:
    """Its tasks end after their epoch, and others are never begun."""
    quick = make_task("quick", tmp_path / "quick", tasks.show_process)
    first, *others = make_endless(tmp_path, "abc")
    outcomes = pool.run([first, quick, *others])
    assert next(outcomes).name == "quick"
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    outcomes.close()
    (outcome,) = pool.run([quick])  # on a worker that is free again
    assert outcome.reason == ""
    assert len(read_pids(tmp_path)) == 2


@pytest.mark.parametrize(
    ("number", "status", "line"),
    [
        (signal.SIGKILL, -9, ""),
        (signal.SIGINT, 130, "interrupted\n"),
        (signal.SIGTERM, 143, "told to stop\n"),
    ],
)
def test_a_killed_program_leaves_nothing(
    number: int,
    status: int,
    line: str,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    process = start_script(tmp_path)
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    family = [c.pid for c in psutil.Process(process.pid).children(True)]
    assert set(read_pids(tmp_path)) <= set(family)
    # A terminal and `timeout` send a signal to the workers, too.
    os.killpg(process.pid, number)
    output = process.communicate(timeout=PATIENCE)[0]
    assert (process.returncode, output) == (status, line)
    wait_for(lambda: not any(map(is_running, family)))
    assert len(read_pids(tmp_path)) == 2


@pytest.fixture
def remote() -> Iterator[str]:
    """The address of a scheduler that is not ours, and lives on."""
    with LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster.scheduler_address


def run_tasks(wanted: list[Task], options: SchedulerOptions) -> list[Outcome]:
    with Pool(options) as pool:
        return list(pool.run(wanted))


def test_a_remote_scheduler(
    remote: str, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    """Its worker runs one task at a time, and stops one of a dead client."""
    options = SchedulerOptions(scheduler=remote)
    folder = tmp_path / "first"
    wanted = [make_task(n, folder, tasks.show_process) for n in "ab"]
    assert [o.reason for o in run_tasks(wanted, options)] == ["", ""]
    (worker,) = set(read_pids(folder))
    process = start_script(tmp_path, remote)
    wait_for(lambda: read_pids(tmp_path))
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert [o.reason for o in run_tasks(wanted[:1], options)] == [""]
    assert set(read_pids(tmp_path)) == {worker} and is_running(worker)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "nonsense://x", "tls://h:1", "ucx://h:1"]
)
def test_no_scheduler_at_the_address(address: str) -> None:
    start = time.monotonic()
    with pytest.raises(ConfigError, match="--scheduler must be the address"):
        check_scheduler(SchedulerOptions(scheduler=address))
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    "address", ["nope", "[", "tcp://h", "tcp://:8786", "h:x"]
)
def test_what_is_no_address_is_refused_before_anything(address: str) -> None:
    with pytest.raises(ConfigError, match="--scheduler must be the address"):
        SchedulerOptions(scheduler=address)
    SchedulerOptions(scheduler="tls://[::1]:8786")
