"""Runs three endless tasks in a pool until somebody ends it.

pool_script.py FOLDER [SCHEDULER]
"""

import sys
from pathlib import Path

from tfcomp.config.command import exit_on_user_error
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool
from tfcomp.sweeps.scheduling import Task

ENDLESS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def main(argv: list[str]) -> int:
    folder, scheduler = Path(argv[1]), "".join(argv[2:])
    command = [sys.executable, "-c", ENDLESS]
    tasks = [Task(f"t{i}", command, folder / f"{i}.log") for i in range(3)]
    options = SchedulerOptions(
        workers=0 if scheduler else 2, scheduler=scheduler
    )
    with Pool(options) as pool:
        return len(list(pool.run(tasks)))


if __name__ == "__main__":
    exit_on_user_error(main)
