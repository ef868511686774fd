"""Stands for a pool: trials run one after the other in this process."""

import importlib
from collections.abc import Iterator
from contextlib import redirect_stdout

from tfcomp.config.errors import RunError
from tfcomp.sweeps.scheduling import Outcome, Task


class PoolHere:
    """Runs tasks without Dask and without processes, and remembers them."""

    workers = 1

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, tasks: list[Task]) -> Iterator[Outcome]:
        for task in tasks:
            self.ran.append(task.name)
            status, reason = 0, ""
            try:
                if task.command != ["true"]:
                    _, _, module, *_ = task.command
                    with redirect_stdout(None):
                        importlib.import_module(module).main(task.command[2:])
            except RunError as error:
                status, reason = error.status, str(error)
            yield Outcome(task.name, status, reason, 1.0)

    def close(self) -> None:
        pass
