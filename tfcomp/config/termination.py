"""Ends a command on SIGTERM, however often Python loses the request.

An exception that a handler raises is swallowed in callbacks of the garbage
collector, in `__del__`, and by a library's `except:`. It is therefore raised
again until it has left the command.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator

STATUS = 143  # as shells number it: 128, and the number of the signal
REPEAT_SECONDS = 0.05  # until the exception is raised again
# `timeout` tells the process and then its group: two signals, one request.
SAME_REQUEST_SECONDS = 1.0


class Terminated(SystemExit):
    """SIGTERM: files and folders are closed on the way out."""

    def __init__(self) -> None:
        super().__init__(STATUS)


@contextlib.contextmanager
def end_on_sigterm() -> Iterator[None]:
    """Makes SIGTERM leave the block by `Terminated`; a later one kills.

    Raises:
        Terminated: A signal came, even if a library turned the exception into
            one of its own.
    """
    request = _Request()
    signal.signal(signal.SIGTERM, request.receive)
    try:
        yield
    except BaseException as error:
        if request.time is None:
            raise
        raise Terminated from error
    finally:
        request.finish()


class _Request:
    """The request to end, from the first signal until the block is left."""

    def __init__(self) -> None:
        self.time: float | None = None
        self._is_finished = False

    def receive(self, *_: object) -> None:
        """Handles SIGTERM."""
        now = time.monotonic()
        if self.time is None and not self._is_finished:
            self.time = now
            # Exceptions that are swallowed are printed; this one is repeated.
            sys.unraisablehook = _print_nothing
            signal.signal(signal.SIGALRM, self._repeat)
            signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS, REPEAT_SECONDS)
            raise Terminated

        if self.time is None or now - self.time > SAME_REQUEST_SECONDS:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)

    def finish(self) -> None:
        """Stops the repetition; what the process does now is its end."""
        self._is_finished = True
        if self.time is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _repeat(self, *_: object) -> None:
        if not (self._is_finished or _is_unwinding()):
            raise Terminated


def _is_unwinding() -> bool:
    """Checks whether `finally` blocks or `except` clauses are at work."""
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, Terminated):
            return True
        error = error.__context__
    return False


def _print_nothing(_: object) -> None:
    pass
