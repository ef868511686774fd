"""What a machine can give to each of several trials: cores and GPUs."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from tfcomp.config.machine import count_cores

# Every library that a trial computes with reads one of these.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


def count_threads(workers: int) -> int:
    """Threads for each of several workers, at least one."""
    return max(1, count_cores() // workers)


def pin_threads(threads: int) -> dict[str, str]:
    """Environment of a process with so many threads; 0 leaves it alone."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads)) if threads else {}


def list_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA names them.

    TensorFlow would occupy a GPU by looking, so the driver is asked.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        # CUDA ignores what follows the first invalid entry, such as -1.
        stops = [i for i, name in enumerate(names) if name in ("", "-1")]
        return names[: stops[0]] if stops else names
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    if shutil.which(command[0]) is None:
        return []
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that does not answer cannot train either
    return found.stdout.split()


def share_gpu(
    gpus: Sequence[str], number: int, trials_per_gpu: int
) -> dict[str, str]:
    """Environment of a process on one of the GPUs of its machine.

    Args:
        gpus: As CUDA names them.
        number: Of the process among those that run at the same time.
        trials_per_gpu: Processes on each GPU; where there are several, none
            may take all of its memory, as TensorFlow does.
    """
    growth = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"} if trials_per_gpu > 1 else {}
    return {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)], **growth}
