"""Ends a command on SIGTERM or SIGHUP, however often Python loses the request.

An exception that a handler raises is swallowed in callbacks of the garbage
collector, in `__del__`, and by a library's `except:`. It is therefore raised
again until it has left the command.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator

SHELL = 128  # shells add the number of a signal to it
REPEAT_SECONDS = 0.05  # until the exception is raised again
# `timeout` tells the process and then its group: two signals, one request.
SAME_REQUEST_SECONDS = 1.0


class Terminated(SystemExit):
    """SIGTERM or SIGHUP: files and folders are closed on the way out.

    Args:
        number: The signal; `code` is the status that shells give it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(SHELL + number)


@contextlib.contextmanager
def end_on_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP leave a block by `Terminated`; later ones kill.

    `nohup` lets a command ignore SIGHUP, which stays.

    Raises:
        Terminated: A signal came, even if a library turned the exception into
            one of its own.
    """
    request = _Request()
    signal.signal(signal.SIGTERM, request.receive)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, request.receive)
    try:
        yield
    except BaseException as error:
        if request.time is None:
            raise
        raise Terminated(request.number) from error
    finally:
        request.finish()


class _Request:
    """The request to end, from the first signal until the block is left."""

    def __init__(self) -> None:
        self.time: float | None = None
        self.number = int(signal.SIGTERM)
        self._is_finished = False

    def receive(self, number: int, _: object) -> None:
        """Handles a signal."""
        now = time.monotonic()
        if self.time is None and not self._is_finished:
            self.time = now
            self.number = number
            # Exceptions that are swallowed are printed; this one is repeated.
            sys.unraisablehook = _print_nothing
            signal.signal(signal.SIGALRM, self._repeat)
            signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS, REPEAT_SECONDS)
            raise Terminated(number)

        if self.time is None or now - self.time > SAME_REQUEST_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def finish(self) -> None:
        """Stops the repetition; what the process does now is its end."""
        self._is_finished = True
        if self.time is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _repeat(self, *_: object) -> None:
        if not (self._is_finished or _is_unwinding()):
            raise Terminated(self.number)


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
