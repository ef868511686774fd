"""`python -m tfcomp.sweep` with trials that take no time (`fake_trial.py`).

It makes the tables of the trials, and nothing that is computed of them.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from tests.sweeps import fake_trial
from tfcomp import sweep
from tfcomp.config import run_flags
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_config import RunConfig
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.worker_task import TaskFunction


def make_call(
    sweep: Sweep,
    trial: Trial,
) -> tuple[RunConfig, TaskFunction, list[str]]:
    lines = run_flags.list_flag_lines(trial.config)
    return trial.config, fake_trial.run_trial, lines


def list_flags(folder: Path) -> list[str]:
    """The flags of a sweep of four trials."""
    line = "smoke --run_name=s --grid=depth=2,3 --seeds=2 --workers=2"
    return [*line.split(), f"--log_dir={folder}", f"--export_dir={folder}/m"]


def start_sweep(
    folder: Path,
    seconds: float = 2,
    *flags: str,
    stderr: int | IO = subprocess.STDOUT,
) -> subprocess.Popen:
    """Starts a sweep of four fake trials that take so long."""
    environment = {
        "FAKE_SECONDS": str(seconds),
        "DASK_JOBQUEUE__SLURM__INTERFACE": "lo",
    }
    program = [sys.executable, "-m", "tests.sweeps.fake_sweep"]
    return subprocess.Popen(
        [*program, *list_flags(folder), *flags],
        env=os.environ | environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=stderr,
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
