"""Keeps TensorFlow's start-up chatter off the terminal.

The C++ runtime writes to file descriptor 2 before its own log level is in
force, so the descriptor itself is held back for as long as that takes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO

from tfcomp.config.failures import explain_failure


@contextlib.contextmanager
def quiet_startup() -> Iterator[None]:
    """Holds back what is written to stderr; shows it if the block crashes.

    What is to be said in one line (`explain_failure`) is no crash.
    Set `TF_CPP_MIN_LOG_LEVEL=0` in the environment to see everything.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with _open_memory() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException as error:
            if explain_failure(error) is None:
                held.seek(0)
                os.write(terminal, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)


def _open_memory() -> IO[bytes]:
    """A file that needs no disk, which may be full or read-only."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stderr"), "w+b")
    return tempfile.TemporaryFile()
