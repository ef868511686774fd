"""Tasks on a scheduler that somebody else has started, and its address."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from tests.sweeps.pool_tasks import python, read_pids, start_script
from tfcomp.config.errors import ConfigError
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Outcome, Pool, Task, check_scheduler

PATIENCE = 200  # seconds, for a machine that is busy
Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


def run_tasks(tasks: list[Task], options: SchedulerOptions) -> list[Outcome]:
    with Pool(options) as pool:
        return list(pool.run(tasks))


@pytest.fixture
def remote() -> Iterator[str]:
    """The address of a scheduler that is not ours."""
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster.scheduler_address


def test_a_remote_scheduler(
    remote: str, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    options = SchedulerOptions(scheduler=remote)
    tasks = [python(name, tmp_path / "a", "print(1)") for name in "ab"]
    outcomes = run_tasks(tasks, options)
    assert [outcome.returncode for outcome in outcomes] == [0, 0]
    # Its worker lives on; what it runs must not when its client has died.
    process = start_script(tmp_path, remote)
    wait_for(lambda: read_pids(tmp_path))
    process.kill()
    process.communicate(timeout=PATIENCE)
    (pid,) = read_pids(tmp_path)
    wait_for(lambda: not is_running(pid))
    (outcome,) = run_tasks(tasks[:1], options)
    assert outcome.returncode == 0
    assert read_pids(tmp_path) == [pid]


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "nonsense://x", "tls://h:1", "ucx://h:1"]
)
def test_no_scheduler_at_the_address(address: str) -> None:
    start = time.monotonic()
    with pytest.raises(ConfigError, match="--scheduler must be the address"):
        check_scheduler(SchedulerOptions(scheduler=address))
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("name", ["workers", "threads", "worker_timeout"])
def test_options(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--{name} must be at least 0"):
        SchedulerOptions(**{name: -1})


def test_workers_of_a_scheduler_are_its_own() -> None:
    with pytest.raises(ConfigError, match="--workers must be left out"):
        SchedulerOptions(workers=2, scheduler="tcp://localhost:8786")


@pytest.mark.parametrize(
    "address", ["nope", "[", "tcp://h", "tcp://:8786", "h:x"]
)
def test_what_is_no_address_is_refused_before_anything(address: str) -> None:
    """Before, it was taken where nothing was left to run."""
    with pytest.raises(ConfigError, match="--scheduler must be the address"):
        SchedulerOptions(scheduler=address)
    SchedulerOptions(scheduler="tls://[::1]:8786")
