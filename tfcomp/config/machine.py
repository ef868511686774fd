"""Cores, memory and threads that this machine gives to a process."""

from __future__ import annotations

import ctypes
import math
import os
import re
from pathlib import Path

from tfcomp.config.quiet import GPU_FILE
from tfcomp.config.run_config import RunConfig

# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (benchmarks/README.md).
_MIN_MULTIPLICATIONS = 200e6
CPU_FILE = Path("/proc/cpuinfo")


def count_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_memory() -> int:
    """Bytes of memory of this machine, or of the container that it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text()
        return min(memory, int(limit))
    except (OSError, ValueError):
        return memory  # no limit: there is no file, or it says "max"


def lacks_bfloat16() -> bool:
    """Whether bfloat16 is emulated here, slowly: by an x86 without AVX-512.

    TensorFlow's kernels need AVX-512, or the conversions that some processors
    have without it. How quick other processors are nobody has measured here.
    """
    try:
        found = re.search(r"^flags\s*:(.*)", CPU_FILE.read_text(), re.M)
    except OSError:
        return False  # no Linux
    if found is None or GPU_FILE.exists():
        return False
    return {"avx512f", "avx_ne_convert"}.isdisjoint(found[1].split())


def keep_freed_memory() -> None:
    """Lets the process use memory again that it has freed.

    By default the GNU C library returns blocks of 128 KiB and more to the
    system, and the tensors of every training step are new pages.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: the most that it accepts
        mallopt(-1, 512 << 20)  # M_TRIM_THRESHOLD


def limit_threads(config: RunConfig) -> None:
    """Gives a run its threads, before TensorFlow starts; a variable wins."""
    if threads := choose_threads(config):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads))


def choose_threads(config: RunConfig) -> int:
    """Threads that a run can use: one for a small network, 0 for any number.

    A function of the settings alone, since the number of threads changes
    bits: a resumed run has the number that it was started with.
    """
    model, pixels = config.model, config.data.grid_size**2
    each = {  # multiplications of the widest layers for an image, where known
        "low_rank": 2 * model.rank * pixels,
        "hard_rendering": 9 * model.width**2 * pixels,
        "cnn": 9 * model.width**2 * pixels,
    }
    number = config.training.batch_size * each.get(model.model, math.inf)
    return int(number < _MIN_MULTIPLICATIONS)
