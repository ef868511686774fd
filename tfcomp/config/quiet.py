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

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError


@contextlib.contextmanager
def quiet_startup() -> Iterator[None]:
    """Holds back what is written to stderr; shows it if the block crashes.

    Set `TF_CPP_MIN_LOG_LEVEL=0` in the environment to see everything.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except (ConfigError, RunError):
            raise
        except BaseException:
            held.seek(0)
            os.write(terminal, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
