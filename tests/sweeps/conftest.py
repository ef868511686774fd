"""Waiting for processes, and a cluster, for tests that kill some of them."""

import time
from collections.abc import Callable

import psutil
import pytest

from tests.sweeps.fake_sweep import list_flags, read_table, use_fake_trials
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep

PATIENCE = 200  # seconds, for a machine that is busy
Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


@pytest.fixture
def wait_for() -> Wait:
    """Returns once a condition holds; fails if it does not."""

    def wait(condition: Callable[[], object]):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of a sweep that nothing stops, in this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        use_fake_trials(patch, PoolHere())
        assert sweep.main(["sweep", *list_flags(folder)]) == 0
    table = read_table(folder)
    assert table.count(b"finished") == 4
    return table


@pytest.fixture
def is_running() -> IsRunning:
    """True if a process exists and has not ended."""

    def check(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return check
