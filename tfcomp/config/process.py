"""Cores, memory and temporary files of this process; requests to stop it."""

import contextlib
import ctypes
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

PREFIX = "tfcomp-"
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
