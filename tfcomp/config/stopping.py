"""Lets a long computation ask, where it can end well, whether it is to stop.

Trainings ask between epochs. A computation that nobody can stop never does.
"""

import contextlib
from collections.abc import Callable, Iterator

IsStopped = Callable[[], bool]
_checks: list[IsStopped] = []


class StopRequested(BaseException):
    """The computation was asked to stop: its checkpoints are kept."""


@contextlib.contextmanager
def stop_when(is_stopped: IsStopped) -> Iterator[None]:
    """Makes `check_stop` ask `is_stopped` during the block."""
    _checks.append(is_stopped)
    try:
        yield
    finally:
        _checks.remove(is_stopped)


def check_stop() -> None:
    """Raises StopRequested if any of the checks in force says so."""
    if any(is_stopped() for is_stopped in _checks):
        raise StopRequested
