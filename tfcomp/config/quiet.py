"""Starts TensorFlow quickly, and keeps its chatter off the terminal.

The C++ runtime writes to file descriptor 2 before its own log level is in
force, so the descriptor itself is held back for as long as that takes.
"""

import contextlib
import gc
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO

from tfcomp.config.failures import explain_failure

# Keras imports them if it can, for inputs and wrappers that we do not use.
NEEDLESS = ("matplotlib", "pandas", "sklearn")


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


@contextlib.contextmanager
def start_tensorflow() -> Iterator[None]:
    """Imports TensorFlow in little more than half its time, and quietly.

    It spends the rest on packages that nothing here needs of Keras, and on
    looking for garbage among a million new objects that all stay.
    """
    with quiet_startup():
        if "keras" not in sys.modules:
            _import_keras()
            # It looks for GPUs once, and complains where it has no driver.
            tensorflow = importlib.import_module("tensorflow")
            tensorflow.config.list_physical_devices()
        yield


def _import_keras() -> None:
    absent = [name for name in NEEDLESS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # an import of them fails
    gc.disable()
    try:
        importlib.import_module("keras")
    finally:
        gc.enable()
        gc.freeze()
        for name in absent:
            del sys.modules[name]


def _open_memory() -> IO[bytes]:
    """A file that needs no disk, which may be full or read-only."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stderr"), "w+b")
    return tempfile.TemporaryFile()
