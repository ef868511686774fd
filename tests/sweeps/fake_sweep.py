"""`python -m tfcomp.sweep` with trials that take no time (`fake_trial.py`).

It makes the tables of the trials, and nothing that is computed of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sweeps import fake_trial
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.config import run_flags
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_config import RunConfig
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.pool import Pool
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.worker_task import TaskFunction

if TYPE_CHECKING:
    import pytest


def make_call(
    sweep: Sweep,
    trial: Trial,
) -> tuple[RunConfig, TaskFunction, list[str]]:
    lines = run_flags.list_flag_lines(trial.config)
    return trial.config, fake_trial.run_trial, lines


def use_pool(patch: pytest.MonkeyPatch, pool: Pool | PoolHere):
    """Makes sweeps of this process run their trials in a pool."""
    patch.setattr(sweep_run, "open_pool", lambda *_: nullcontext(pool))


def use_fake_trials(
    patch: pytest.MonkeyPatch,
    pool: Pool | PoolHere | None = None,
):
    """Makes sweeps run fake trials, here or where flags say; draws nothing."""
    patch.setattr(Sweep, "make_call", make_call)
    patch.setattr(Sweep, "write_reports", lambda sweep: None)
    if pool is not None:
        use_pool(patch, pool)


def list_flags(folder: Path) -> list[str]:
    """The flags of a sweep of four trials."""
    line = "smoke --run_name=s --grid=depth=2,3 --seeds=2 --workers=2"
    return [*line.split(), f"--log_dir={folder}", f"--export_dir={folder}/m"]


def start_sweep(
    folder: Path,
    seconds: float,
    *flags: str,
) -> subprocess.Popen:
    """Starts a sweep of four fake trials that take so long."""
    environment = {"FAKE_SECONDS": str(seconds)}
    program = [sys.executable, "-m", "tests.sweeps.fake_sweep"]
    return subprocess.Popen(
        [*program, *list_flags(folder), *flags],
        env=os.environ | environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen, status: int = 0) -> str:
    """Waits for the end, checks the exit status, returns what was printed."""
    output, _ = process.communicate(timeout=200)
    assert process.returncode == status, output
    return output


def read_starts(folder: Path) -> list[int]:
    """Processes of trials, in the order of their starts."""
    file = folder / "s" / "starts.txt"
    if not file.exists():
        return []
    lines = file.read_text().splitlines()
    return [int(line.split()[0]) for line in lines]


def read_table(folder: Path) -> bytes:
    return (folder / "s" / "trials.csv").read_bytes()


if __name__ == "__main__":
    Sweep.make_call = make_call
    Sweep.write_reports = lambda sweep: None
    exit_on_user_error(sweep.main)
