"""Keeps as many jobs of a cluster as there is work for.

New ones take the places of those that end as long as trials are left. Those
without work are cancelled, first those that still wait in the queue.
"""

from __future__ import annotations

import asyncio
import getpass
import itertools
import math
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfcomp.config.errors import RunError
from tfcomp.sweeps.sweep_progress import say

if TYPE_CHECKING:
    from dask_jobqueue import JobQueueCluster

# What prints a line for every job of a user, which begins with its number.
LISTS = {
    "slurm": "squeue --me --noheader --format=%A",
    "pbs": "qstat -u {user}",
    "lsf": "bjobs -noheader -o jobid",
    "sge": "qstat -u {user}",
    "htcondor": "condor_q -nobatch -autoformat:j ClusterId",
}
ASK_SECONDS = 30  # how often a cluster is asked for its jobs
ANSWER_SECONDS = 60  # that it may take to answer
MAX_SUBMITTED = 20  # jobs at a time, so that the cluster stays quick for all
MANY_LOST = 10  # jobs, all of which a trial outlives
MAX_FAILED = 3  # jobs in a row that end before they have reached us
FAILURES = (OSError, RuntimeError, ValueError)  # of what submits jobs


class JobQueue:
    """The jobs of a cluster, adjusted in the background."""

    def __init__(
        self,
        kind: str,
        cluster: JobQueueCluster,
        trials_per_job: int,
        most: int,
    ) -> None:
        self.waiting = False  # whether jobs do, as far as it is known
        self.problem = ""  # why there will be no more jobs
        self._kind = kind
        self._cluster = cluster
        self._trials_per_job = trials_per_job
        self._most = most  # trials at a time, in all jobs
        self._left = 0  # trials, when it was last looked
        self._lost = 0  # jobs since then
        self._known: set[str] = set()  # workers that have reached us
        self._submitted: dict[str, float] = {}  # when, by worker
        self._numbers = itertools.count()
        self._failed = 0
        self._asked = -math.inf
        self._round: asyncio.Future | None = None
        self._watch_arrivals()

    def start(self, left: int) -> None:
        """Submits the first job, then more; RunError if that is refused."""
        try:
            self._cluster.sync(self._adjust, self._trials_per_job)
        except FAILURES as error:
            text = f"no job can be submitted: {shorten(error)}"
            raise RunError(text) from None
        self.adjust(left)

    def adjust(self, left: int) -> None:
        """Lets the number of jobs follow that of trials left, soon."""
        self._cluster.loop.add_callback(self._begin_round, left)

    def _watch_arrivals(self) -> None:
        """Notes every worker that reaches us, also one that soon is gone."""
        from distributed import Scheduler, SchedulerPlugin

        queue = self

        class Arrivals(SchedulerPlugin):
            def add_worker(self, scheduler: Scheduler, worker: str) -> None:
                queue._known.add(str(scheduler.workers[worker].name))
                queue._failed = 0

        self._cluster.scheduler.add_plugin(Arrivals(), name="tfcomp-arrivals")

    def _begin_round(self, left: int) -> None:
        if self._round is None or self._round.done():
            self._round = asyncio.ensure_future(self._try_to_adjust(left))

    async def _try_to_adjust(self, left: int) -> None:
        try:
            await self._adjust(left)
        except FAILURES as error:
            say(f"{shorten(error)}: trying again in {ASK_SECONDS} s")
            await asyncio.sleep(ASK_SECONDS)

    async def _adjust(self, left: int) -> None:
        specs = self._cluster.worker_spec
        states = self._cluster.scheduler.workers.values()
        here = {str(state.name) for state in states}
        for name in await self._find_lost(here, left):
            specs.pop(name, None)
        # After the cluster was asked, which may take it a minute.
        busy = {str(state.name) for state in states if state.processing}
        wanted = math.ceil(min(left, self._most) / self._trials_per_job)
        idle = sorted(set(specs) - busy, key=lambda name: name in here)
        for name in idle[: max(0, len(specs) - wanted)]:
            specs.pop(name)
        more = min(wanted - len(specs), MAX_SUBMITTED)
        for _ in range(0 if self.problem else more):
            # A name that was never used, since the last job may still end.
            specs[f"tfcomp-{next(self._numbers)}"] = self._cluster.new_spec
        await self._cluster  # until all is submitted and cancelled
        for name in specs:
            self._submitted.setdefault(name, time.monotonic())
        self.waiting = bool(set(specs) - self._known)

    async def _find_lost(self, here: set[str], left: int) -> set[str]:
        """Jobs that have ended, or were never taken."""
        specs = set(self._cluster.worker_spec)
        lost = (self._known - here) & specs
        self._lost = len(lost) + (self._lost if left == self._left else 0)
        self._left = left
        if self._lost >= MANY_LOST:
            say(
                f"{self._lost} jobs have ended and no trial has: --job_time "
                "must be longer than a trial's start and the time between two "
                "checkpoints (--checkpoint_seconds)"
            )
            self._lost = 0
        jobs = self._cluster.workers.items()
        refused = {name for name, job in jobs if job.job_id is None}
        return lost | await self._find_ended(specs - self._known) | refused

    async def _find_ended(self, names: set[str]) -> set[str]:
        """Those of the jobs that ended before they have reached us."""
        now = time.monotonic()
        jobs = self._cluster.workers
        # A job that was submitted a moment ago may not be listed yet.
        ages = {n: now - self._submitted.get(n, now) for n in names & set(jobs)}
        old = [name for name, age in ages.items() if age > ASK_SECONDS]
        if not old or now - self._asked < ASK_SECONDS:
            return set()
        self._asked = now
        listed = await list_jobs(self._kind)
        if listed is None:
            return set()
        ended = {name for name in old if jobs[name].job_id not in listed}
        for name in ended:
            say(f"job {jobs[name].job_id} has ended before it reached us")
            jobs[name].job_id = None  # nothing to cancel
        self._failed += len(ended)
        if self._failed >= MAX_FAILED:
            self.problem = (
                f"{self._failed} jobs in a row have ended before they reached "
                "this machine (their output says why)"
            )
        return ended


async def list_jobs(kind: str) -> set[str] | None:
    """The numbers of this user's jobs, None if the cluster does not answer."""
    command = shlex.split(LISTS[kind].format(user=getpass.getuser()))
    try:
        answer = await asyncio.to_thread(
            subprocess.run,
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return set(find_numbers(answer.stdout))


def find_numbers(text: str) -> Iterator[str]:
    """The number that a line begins with; that of HTCondor has two parts."""
    for line in text.splitlines():
        if found := re.match(r"\s*(\d+(\.\d+)?)", line):
            yield found[1]


def shorten(error: Exception) -> str:
    """What a program that failed has said, in one line."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and line[-1] != ":"]
    return told[-1] if told else type(error).__name__
