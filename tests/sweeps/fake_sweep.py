"""`python -m tfcomp.sweep` with trials that take no time (`fake_trial.py`).

It makes the tables of the trials, and nothing that is computed of them.
"""

from tests.sweeps import fake_trial
from tfcomp import sweep
from tfcomp.config import run_flags
from tfcomp.config.command import exit_on_user_error
from tfcomp.config.run_config import RunConfig
from tfcomp.sweeps import clusters, sweep_run
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.worker_task import TaskFunction


def make_call(
    sweep: Sweep, trial: Trial
) -> tuple[RunConfig, TaskFunction, list[str]]:
    lines = run_flags.list_flag_lines(trial.config)
    return trial.config, fake_trial.run_trial, lines


if __name__ == "__main__":
    Sweep.make_call = make_call
    clusters.LOST_SECONDS = 2
    sweep_run.write_reports = lambda *arguments: None
    exit_on_user_error(sweep.main)
