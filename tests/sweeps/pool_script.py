"""Runs three endless tasks in warm processes until somebody ends it.

pool_script.py FOLDER [SCHEDULER]
"""

import sys
from pathlib import Path

from tfcomp.config.command import exit_on_user_error
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task


def main(argv: list[str]) -> int:
    folder, scheduler = Path(argv[1]), "".join(argv[2:])
    command = [sys.executable, "-m", "tests.sweeps.endless"]
    logs = [folder / f"{number}.log" for number in range(3)]
    tasks = [Task(log.stem, command, log, setup="") for log in logs]
    options = SchedulerOptions(
        workers=0 if scheduler else 2, scheduler=scheduler
    )
    with Pool(options) as pool:
        return len(list(pool.run(tasks)))


if __name__ == "__main__":
    exit_on_user_error(main)
