"""What this machine gives to a process."""

import ctypes
import os
from pathlib import Path

from tfcomp.config.run_config import RunConfig

# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (docs/speed.md).
_MIN_MULTIPLICATIONS = 200e6
# Parameters of `mallopt` of the GNU C library, and their values in bytes.
_MMAP_THRESHOLD = (-3, 32 << 20)  # the largest that it accepts
_TRIM_THRESHOLD = (-1, 512 << 20)


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


def limit_threads(config: RunConfig) -> None:
    """Gives a run its threads, before TensorFlow starts.

    What the environment says goes first.
    """
    if threads := choose_threads(config):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads))


def choose_threads(config: RunConfig) -> int:
    """Threads that a run can use: one for a small network, 0 for any number.

    A function of the settings alone, since the number of threads changes
    bits: a resumed run has the number that it was started with.
    """
    return int(estimate_multiplications(config) < _MIN_MULTIPLICATIONS)


def estimate_multiplications(config: RunConfig) -> float:
    """Of a forward pass of the widest layers; infinite if not known."""
    model, pixels = config.model, config.data.grid_size**2
    each = {
        "low_rank": 2 * model.rank * pixels,
        "hard_rendering": 9 * model.width**2 * pixels,
        "cnn": 9 * model.width**2 * pixels,
    }
    return config.training.batch_size * each.get(model.model, float("inf"))
