"""Figures are drawn in a process of their own while others are made.

    python -m tfcomp.figures.draw_process

takes pickles of a figure and of where it is written, and answers with nothing
once its files are there. To place and draw the parts of a figure takes as long
as to make it. What cannot go to another process (a figure of a plugin, say) is
drawn in this one.
"""

import contextlib
import dataclasses
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import matplotlib

from tfcomp.config.helper_process import HelperProcess, serve_requests
from tfcomp.figures.exhibits import Exhibit, save_exhibit
from tfcomp.figures.layout import IS_AT_DRAWING


class Drawing:
    """Exhibits that are being written; `drawn_elsewhere` makes one."""

    def __init__(self, helper: HelperProcess) -> None:
        self._helper = helper
        self._pool = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        self._is_over = False

    def save(self, exhibits: Sequence[Exhibit], folder: Path) -> None:
        """Writes their tables, and sooner or later their pictures."""
        for exhibit in exhibits:
            save_exhibit(dataclasses.replace(exhibit, figure=None), folder)
            if exhibit.figure is not None:
                self._draw(dataclasses.replace(exhibit, rows=[]), folder)

    def wait(self) -> None:
        """Waits until all pictures are written."""
        while self._pending:
            self._pending.pop(0).result()

    def stop(self) -> None:
        """Gives up what is not written, and ends the process."""
        self._is_over = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._helper.stop()

    def _draw(self, exhibit: Exhibit, folder: Path) -> None:
        # To ask for the backend is to choose one, which imports it.
        names = set(matplotlib.rcParams) - {"backend"}
        settings = {name: matplotlib.rcParams[name] for name in names}
        try:
            request = pickle.dumps((exhibit, folder, settings))
        except Exception:  # whatever a class of somebody else's raises
            save_exhibit(exhibit, folder)
        else:
            self._pending.append(self._pool.submit(self._ask, request))

    def _ask(self, request: bytes) -> None:
        try:
            is_drawn = not self._helper.ask(request)
        except (OSError, ValueError):  # it has ended, or had before
            is_drawn = False
        if not (is_drawn or self._is_over):
            _draw(request)


_started: list[HelperProcess] = []


def start_drawing() -> None:
    """Starts the process before it is needed: its imports take seconds."""
    if not _started:
        _started.append(HelperProcess("tfcomp.figures.draw_process"))


@contextlib.contextmanager
def drawn_elsewhere() -> Iterator[Drawing]:
    """Figures that are made in the block are arranged when they are drawn."""
    start_drawing()
    drawing = Drawing(_started.pop())
    token = IS_AT_DRAWING.set(True)
    try:
        yield drawing
    finally:
        IS_AT_DRAWING.reset(token)
        drawing.stop()


def _draw(request: bytes) -> None:
    exhibit, folder, settings = pickle.loads(request)
    with matplotlib.rc_context(settings):
        save_exhibit(exhibit, folder)


def _answer(request: bytes) -> bytes:
    """Nothing, or why it could not be drawn."""
    try:
        _draw(request)
    except Exception as error:
        return repr(error).encode()
    return b""


if __name__ == "__main__":
    serve_requests(_answer)
