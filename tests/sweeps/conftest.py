"""Waiting for processes, and a cluster, for tests that kill some of them."""

import time
from collections.abc import Callable
from contextlib import nullcontext

import psutil
import pytest

from tests.sweeps.fake_sweep import list_flags, make_call, read_table
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.sweeps import sweep_run

PATIENCE = 200  # seconds, for a machine that is busy


@pytest.fixture
def wait_for() -> Callable[[Callable[[], object]], None]:
    """Returns once a condition holds; fails if it does not."""

    def wait(condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of a sweep that nothing stops, in this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    pool = nullcontext(PoolHere())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_run.Sweep, "make_call", make_call)
        patch.setattr(sweep_run.Sweep, "write_reports", lambda sweep: None)
        patch.setattr(sweep_run, "open_pool", lambda *_: pool)
        assert sweep.main(["sweep", *list_flags(folder)]) == 0
    table = read_table(folder)
    assert table.count(b"finished") == 4
    return table


@pytest.fixture
def is_running() -> Callable[[int], bool]:
    """True if a process exists and has not ended."""

    def check(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return check
