"""Waiting for processes, for tests that kill some of them."""

import time
from collections.abc import Callable

import psutil
import pytest

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


@pytest.fixture
def is_running() -> Callable[[int], bool]:
    """Whether a process exists and has not ended."""

    def check(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return check
