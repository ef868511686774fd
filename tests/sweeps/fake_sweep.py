"""`python -m tfcomp.sweep` with trials that take no time (`fake_trial.py`).

It makes all tables and no figures.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from tfcomp import sweep
from tfcomp.config.command import exit_on_user_error
from tfcomp.sweeps import sweep_reports as reports
from tfcomp.sweeps import sweep_run as run
from tfcomp.sweeps.scheduling import Task
from tfcomp.sweeps.trials import Trial

make_real_task = run.make_task


def make_task(whole: run.Sweep, trial: Trial) -> Task:
    task = make_real_task(whole, trial)
    assert task.command[:3] == [sys.executable, "-m", "tfcomp.sweeps.trial"]
    script = str(Path(__file__).with_name("fake_trial.py"))
    command = [sys.executable, script, *task.command[3:]]
    return dataclasses.replace(task, command=command)


if __name__ == "__main__":
    run.make_task = make_task
    reports.write_figures = lambda *arguments: None
    exit_on_user_error(sweep.main)
