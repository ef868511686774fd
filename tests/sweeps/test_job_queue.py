"""How many jobs wait and run, on programs that stand for those of SLURM."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sweeps.fake_slurm import FakeSlurm
from tfcomp.sweeps import job_queue
from tfcomp.sweeps.job_cluster import start_job_cluster
from tfcomp.sweeps.job_queue import JobQueue, find_numbers, list_jobs
from tfcomp.sweeps.scheduler_options import SchedulerOptions

Wait = Callable[[Callable[[], object]], None]


def make_options(workers: int) -> SchedulerOptions:
    return SchedulerOptions(cluster="slurm", workers=workers)


def test_as_many_jobs_as_there_is_work_for(
    slurm: FakeSlurm, said: list[str], tmp_path: Path, wait_for: Wait
) -> None:
    (slurm.folder / "full").touch()  # they wait
    with start_job_cluster(make_options(8), tmp_path) as (cluster, _):
        jobs = JobQueue("slurm", cluster, trials_per_job=2, most=7)
        jobs.start(100)

        def adjust(trials: int, files: Callable[[], list], count: int) -> bool:
            jobs.adjust(trials)
            return len(files()) == count

        wait_for(lambda: adjust(7, slurm.list_scripts, 4) and jobs.waiting)
        wait_for(lambda: adjust(2, slurm.list_cancelled, 3))
        wait_for(lambda: adjust(4, slurm.list_scripts, 5))
        wait_for(lambda: adjust(0, slurm.list_cancelled, 5))
        wait_for(lambda: not jobs.waiting)
    assert len(set(slurm.list_cancelled())) == 5
    assert not said


def test_few_jobs_are_submitted_at_once(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slurm.folder / "full").touch()
    monkeypatch.setattr(job_queue, "MAX_SUBMITTED", 2)
    with start_job_cluster(make_options(8), tmp_path) as (cluster, _):
        jobs = JobQueue("slurm", cluster, trials_per_job=1, most=8)
        counts = []
        for _ in range(3):
            cluster.sync(jobs._adjust, 5)
            counts.append(len(slurm.list_scripts()))
    assert counts == [2, 4, 5]


def test_jobs_that_end_before_their_trials_come_far(
    slurm: FakeSlurm,
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody must hear of it, and only then."""
    (slurm.folder / "full").touch()
    monkeypatch.setattr(job_queue, "MANY_LOST", 3)
    with start_job_cluster(make_options(1), tmp_path) as (cluster, _):
        jobs = JobQueue("slurm", cluster, trials_per_job=1, most=1)
        for left in (9, 9, 9, 8, 8, 8, 8):  # a trial has ended after the third
            cluster.sync(jobs._adjust, left)
            jobs._known |= set(cluster.worker_spec)  # had reached us
            count = len(said)
            assert count == 0 or left == 8
    assert count == 1 and said[0].startswith("3 jobs have ended and no trial")
    assert len(slurm.list_scripts()) == 7


def test_a_cluster_that_refuses_for_a_while(
    slurm: FakeSlurm, said: list[str], tmp_path: Path, wait_for: Wait
) -> None:
    """As while its controller is started again."""
    (slurm.folder / "full").touch()
    with start_job_cluster(make_options(2), tmp_path) as (cluster, _):
        jobs = JobQueue("slurm", cluster, trials_per_job=1, most=8)
        jobs.start(1)
        (slurm.folder / "refuse").touch()
        wait_for(lambda: jobs.adjust(2) or said)
        (slurm.folder / "refuse").unlink()

        def adjust() -> bool:
            jobs.adjust(2)
            return len(slurm.list_scripts()) == 2

        wait_for(adjust)
    assert "invalid partition" in said[0] and "trying again in" in said[0]


def test_the_numbers_of_jobs() -> None:
    """As the programs of the five kinds print them."""
    pbs = (
        "pbs01:\n                                 Req'd\n"
        "Job ID          Username Queue\n--------------- -------- -----\n"
        "123.pbs01       me       long\n"
    )
    sge = "job-ID  prior   name\n------\n    45 0.55500 tfcomp me r\n"
    assert list(find_numbers(pbs)) == ["123"]
    assert list(find_numbers(sge)) == ["45"]
    assert list(find_numbers("7\n8\n")) == ["7", "8"]
    assert list(find_numbers("12.0 12\n12.1 12\n")) == ["12.0", "12.1"]
    assert not list(find_numbers("No unfinished job found\n"))


def test_a_cluster_that_does_not_answer(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is concluded from its silence."""
    program = slurm.folder / "bin" / "squeue"
    assert asyncio.run(list_jobs("slurm")) == set()
    for text in ("#!/bin/sh\necho 7; exit 1\n", "#!/bin/sh\nexec sleep 600\n"):
        program.write_text(text)
        monkeypatch.setattr(job_queue, "ANSWER_SECONDS", 0.2)
        assert asyncio.run(list_jobs("slurm")) is None
    program.unlink()
    monkeypatch.setenv("PATH", str(slurm.folder / "bin"))
    assert asyncio.run(list_jobs("slurm")) is None
