"""A command as a task of Dask, on a worker."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tfcomp.sweeps.guarded_process import make_guarded, wait_or_kill
from tfcomp.sweeps.warm_process import retire, run_warm

_TAIL_BYTES = 20_000
_MAX_REASON = 300


def run_job(
    command: tuple[str | None, ...],
    log: str,
    folder: str,
    environment: dict[str, str],
    gpus: tuple[str, ...],
    setup: str | None,
) -> tuple[int, str, float]:
    """Runs a command.

    Its process has a group of its own, which is killed when the task is
    cancelled, and dies with the worker.

    Args:
        command: The command; None in the first place is the Python of the
            worker, which may lie elsewhere than ours.
        log: File that its output is appended to.
        gpus: GPUs of the machine; the process takes the one that belongs to
            its worker. None at all leaves the choice to the environment.
        setup: See `scheduling.Task`.

    Returns:
        Its exit status, why it failed (see `explain`), and its seconds.
    """
    start = time.monotonic()
    variables = {**os.environ, **environment, **_choose_gpu(gpus)}
    is_cancelled = _make_is_cancelled()
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        begin = output.tell()
    if setup is None:
        retire()  # its memory, and that of its GPU, are wanted
        status = _run_alone(command, log, folder, variables, is_cancelled)
    else:
        program, option, module, *arguments = command
        assert (program, option) == (None, "-m")
        request = {
            "module": module,
            "arguments": arguments,
            "folder": folder,
            "log": log,
        }
        status = run_warm(request, variables, setup, is_cancelled)
    reason = explain(status, read_last_line(Path(log), begin))
    return status, reason, time.monotonic() - start


def _run_alone(
    command: tuple[str | None, ...],
    log: str,
    folder: str,
    variables: Mapping[str, str],
    is_cancelled: Callable[[], bool],
) -> int:
    """Runs a command in a process of its own; returns its exit status."""
    with open(log, "ab") as output:
        process = subprocess.Popen(
            make_guarded(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=variables,
            start_new_session=True,
        )
        return wait_or_kill(process, is_cancelled)


def explain(status: int, last_line: str) -> str:
    """Why a process failed, in one line; empty if it did not."""
    if status == 0:
        return ""
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return last_line or f"exit status {status}"


def read_last_line(log: Path, begin: int = 0) -> str:
    """The last line with text after byte `begin`, short for a message."""
    with open(log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begin, size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    # A progress bar redraws its line with carriage returns.
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    last = next((line for line in reversed(lines) if line), "")
    return " ".join(last.removeprefix("error: ").split())[:_MAX_REASON]


def _choose_gpu(gpus: tuple[str, ...]) -> dict[str, str]:
    """One GPU for each worker of a local cluster, whose names are numbers."""
    if not gpus:
        return {}
    from distributed import get_worker

    index = int(get_worker().name) % len(gpus)
    return {"CUDA_VISIBLE_DEVICES": gpus[index]}


def _make_is_cancelled() -> Callable[[], bool]:
    """Whether the task that runs in this thread has been cancelled.

    A thread cannot be interrupted, so Dask only marks its task: when it was
    cancelled, and when the client that wanted it has died.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return is_cancelled
