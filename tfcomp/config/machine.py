"""Cores and memory that this machine gives to a process."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path


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


def keep_freed_memory() -> None:
    """Makes the process reuse memory that it has freed.

    By default the GNU C library returns blocks of 128 KiB and more to the
    system, and the tensors of every training step are new pages.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: the most that it accepts
        mallopt(-1, 512 << 20)  # M_TRIM_THRESHOLD
