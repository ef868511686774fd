"""What this machine gives to a process: cores, memory, a folder of its own.

Nobody else can enter the folder, so that nobody else can put files where
Python, Dask or TensorFlow look for theirs. It is removed at the end of the
process; what one that was killed has left behind the next one removes.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tfcomp.config.quiet import GPU_FILE
from tfcomp.config.run_config import RunConfig

# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (docs/speed.md).
_MIN_MULTIPLICATIONS = 200e6
CPU_FILE = Path("/proc/cpuinfo")
PREFIX = "tfcomp-"
MAKE_SECONDS = 3600  # enough for a folder to get its file
ALIVE = ".alive"  # locked as long as the process runs
_YOUNG = ".young"  # the same file before it is locked


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


@contextlib.contextmanager
def make_private_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new folder, by default among temporary files, gone after the block.

    Raises:
        OSError: If none can be made.
    """
    clear_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # mode 0700
    try:
        with open(folder / _YOUNG, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(folder / _YOUNG, folder / ALIVE)  # never seen unlocked
            try:
                yield folder
            finally:
                with contextlib.suppress(OSError):  # somebody cleaned up
                    _remove(folder)  # while it is locked: nobody else does
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # of a disk without room for the file


@contextlib.contextmanager
def use_private_folder() -> Iterator[None]:
    """Puts all temporary files of the block, and of its processes, into one.

    Where no folder can be made the block runs without: what needs one says so.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(make_private_folder())
        except OSError:
            yield
            return
        before = os.environ.get("TMPDIR"), tempfile.tempdir
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before[1]
            if before[0] is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before[0]


def clear_abandoned(parent: Path | None = None) -> None:
    """Removes folders of this user whose process is gone."""
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()  # a link may lead anywhere
            private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
            is_ours = private and found.st_uid == os.geteuid()
            if is_ours and not _is_alive(folder):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a folder, the file that tells whose it is at the very end.

    A process that is about to die may still write there: then the file stays,
    and the next command finds the folder again.
    """
    for path in [p for p in folder.iterdir() if p.name != ALIVE]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    if os.listdir(folder) in ([], [ALIVE]):
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(folder: Path) -> bool:
    if not (folder / ALIVE).exists():  # its process is about to make it
        return time.time() - folder.stat().st_mtime < MAKE_SECONDS
    with open(folder / ALIVE, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
