"""Cores, memory and temporary files of this process; requests to stop it."""

import contextlib
import ctypes
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

PREFIX = "tfcomp-"
# What `use_private_folder` sets for this process and its children.
_FOLDER_VARIABLES = ("TMPDIR", "MPLCONFIGDIR")
IsStopped = Callable[[], bool]
_checks: list[IsStopped] = []


def count_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_memory() -> int:
    """Returns the bytes of memory of this machine or container."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text()
        return min(memory, int(limit))
    except (OSError, ValueError):
        return memory  # no limit: there is no file, or it says "max"


@functools.cache
def count_device_memory() -> int:
    """Returns the bytes that TensorFlow may use on the first GPU, or here."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib

    if not tf.config.list_physical_devices("GPU"):
        return count_memory()
    devices = device_lib.list_local_devices()
    return max(d.memory_limit for d in devices if d.device_type == "GPU")


def keep_freed_memory() -> None:
    """Makes the GNU C library reuse memory: else each step has new pages."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: the most that it accepts
        mallopt(-1, 512 << 20)  # M_TRIM_THRESHOLD


@contextlib.contextmanager
def make_private_folder(parent: Path | None = None) -> Iterator[Path]:
    """Makes a temporary folder for one block, which only its user can enter."""
    with tempfile.TemporaryDirectory(  # mode 0700
        prefix=PREFIX, dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


@contextlib.contextmanager
def use_private_folder() -> Iterator[None]:
    """Puts temporary files of this process and its children into one folder."""
    with make_private_folder() as folder:
        before = {name: os.environ.get(name) for name in _FOLDER_VARIABLES}
        tempdir = tempfile.tempdir
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = str(folder)
        if not can_matplotlib_write():
            os.environ["MPLCONFIGDIR"] = str(folder / "matplotlib")
        try:
            yield
        finally:
            tempfile.tempdir = tempdir
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def can_matplotlib_write() -> bool:
    """Checks whether matplotlib can keep its settings and its list of fonts.

    Else it makes a temporary folder in ours, and complains at the end of the
    process, when it wants to remove the folder after we have done so.
    """
    home = os.path.expanduser("~")
    if home == "~":
        return False  # a user whom this machine does not know
    if chosen := os.environ.get("MPLCONFIGDIR"):
        folders = [chosen]
    elif sys.platform == "darwin":
        folders = [f"{home}/.matplotlib"]
    else:
        settings = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        fonts = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
        folders = [f"{settings}/matplotlib", f"{fonts}/matplotlib"]

    for folder in folders:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            return False
        if not os.access(folder, os.W_OK):
            return False

    return True


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
    """Raises StopRequested on request; trainings ask between epochs."""
    if any(is_stopped() for is_stopped in _checks):
        raise StopRequested
