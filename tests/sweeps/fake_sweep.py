"""`python -m tfcomp.sweep` with trials that take no time (`fake_trial.py`).

It makes the tables of the trials, and nothing that is computed of them.
"""

from tfcomp import sweep
from tfcomp.config.command import exit_on_user_error
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.sweep_run import Sweep

make_real_command = Sweep.make_command


def make_command(sweep: Sweep, trial: Trial) -> list[str]:
    program, option, module, *flags = make_real_command(sweep, trial)
    assert (option, module) == ("-m", "tfcomp.sweeps.one_trial")
    return [program, "-m", "tests.sweeps.fake_trial", *flags]


if __name__ == "__main__":
    Sweep.make_command = make_command
    sweep_run.write_reports = lambda *arguments: None
    exit_on_user_error(sweep.main)
