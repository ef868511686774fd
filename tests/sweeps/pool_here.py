"""Stands for a pool: trials run one after the other in this process."""

from collections.abc import Iterator
from contextlib import redirect_stdout

from tfcomp.config.errors import RunError
from tfcomp.sweeps.pool import Outcome
from tfcomp.sweeps.worker_task import Task


class PoolHere:
    """Runs tasks without Dask and without processes, and remembers them."""

    workers = 1

    def __init__(self):
        self.ran: list[str] = []

    def run(self, tasks: list[Task]) -> Iterator[Outcome]:
        for task in tasks:
            self.ran.append(task.name)
            reason = ""
            try:
                with redirect_stdout(None):
                    task.function(["task", *task.arguments])
            except RunError as error:
                reason = str(error)
            yield Outcome(task.name, reason, 1.0)
