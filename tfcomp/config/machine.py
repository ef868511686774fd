"""What this machine gives to a process."""

from __future__ import annotations

import ctypes
import os

# Parameters of `mallopt` of the GNU C library, and their values in bytes.
_MMAP_THRESHOLD = (-3, 32 << 20)  # the largest that it accepts
_TRIM_THRESHOLD = (-1, 512 << 20)


def count_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_freed_memory() -> None:
    """Lets the process use memory again that it has freed.

    By default the GNU C library returns blocks of 128 KiB and more to the
    system, and the tensors of every training step are new pages, which have
    to be fetched and cleared. Other libraries are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(*_MMAP_THRESHOLD)
        mallopt(*_TRIM_THRESHOLD)
