"""Waiting for processes, and a cluster, for tests that kill some of them."""

import os
import time
from collections.abc import Callable

import psutil
import pytest

from tests.sweeps.fake_sweep import finish, read_starts, read_table, start_sweep
from tfcomp.storage.files import lock_folder

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
    """The table of a sweep that nothing stops, made once for all processes."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "undisturbed"
    folder.mkdir(exist_ok=True)
    with lock_folder(folder, wait=True):
        if not (folder / "s").exists():
            assert "[4/4]" in finish(start_sweep(folder, 0, "--workers=1"))
    assert len(read_starts(folder)) == 4
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
