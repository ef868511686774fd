"""Whose death is counted, on a cluster without processes.

Workers die as of a machine that runs out of memory, and come back under new
addresses. A scheduler may notice late, so that tasks are given to dead workers.
"""

import random
from collections import Counter
from pathlib import Path

import distributed
import pytest
from distributed import KilledWorker

from tests.sweeps import tasks
from tests.sweeps.tasks import make_task
from tfcomp.sweeps.pool import MAX_DEATHS, Pool, SchedulerOptions
from tfcomp.sweeps.worker_task import Task


class FakeFuture:
    """A task on a worker: `pending` until time passes or the worker dies."""

    def __init__(self, name: str, address: str):
        self.name = name
        self.address = address
        self.status = "pending"

    def done(self) -> bool:
        return self.status != "pending"

    def exception(self) -> Exception:
        return KilledWorker(self.name, None, 0)

    def cancel(self, force: bool):
        self.status = "cancelled"


class FakeClient:
    """A cluster on which a worker is killed at each of some moments.

    Args:
        kills: The number of workers that are killed.
        deadly: Names of tasks that kill their workers.
    """

    def __init__(self, kills: int, deadly: str):
        self.kills = kills
        self.deadly = deadly
        self.rng = random.Random(0)
        self.workers = [f"tcp://{number}" for number in range(4)]
        self.futures: list[FakeFuture] = []
        self.deaths = Counter[str]()  # by the name of the task that ran

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def submit(
        self,
        function: object,
        task: Task,
        setup: object,
        pure: bool,
        workers: list[str],
    ) -> FakeFuture:
        future = FakeFuture(task.name, *workers)
        self.futures.append(future)
        return future

    def cancel(self, futures: list[FakeFuture], force: bool):
        assert not futures

    def pass_time(self, *_: object):
        """Kills a worker, or ends a task."""
        running = [each for each in self.futures if not each.done()]
        future = self.rng.choice(running)
        is_killed = self.kills > 0 and self.rng.random() < 0.3
        if not is_killed and future.name not in self.deadly:
            future.status = "finished"
            return

        self.kills -= is_killed
        self.deaths[future.name] += 1
        self.workers.remove(future.address)
        self.workers.append(f"tcp://{len(self.futures) + 10}")
        if self.rng.random() < 0.5:  # else the future stays as it was
            future.status = "error"


@pytest.mark.parametrize("deadly", ["", "c"])
def test_only_trials_that_died_four_times_fail(
    deadly: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Six of 60 failed after 14 kills, none of which had died four times."""
    client = FakeClient(14, deadly)
    monkeypatch.setattr(distributed, "wait", client.pass_time)
    pool = Pool(client, SchedulerOptions(workers=4), 4, threads=1)
    names = ["a", "b", "c", *map(str, range(57))]
    wanted = [make_task(name, tmp_path, tasks.show_process) for name in names]

    outcomes = {outcome.name: outcome for outcome in pool.run(wanted)}

    assert outcomes.keys() == set(names)
    assert client.kills == 0
    for name, outcome in outcomes.items():
        assert bool(outcome.reason) == (client.deaths[name] >= MAX_DEATHS)
    failed = [name for name in names if outcomes[name].reason]
    assert failed == list(deadly)
