"""Tasks on Dask: outcomes, threads, deaths of all kinds, no orphans."""

import multiprocessing.spawn
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import distributed
import psutil
import pytest
from distributed import Client

from tests.sweeps.pool_tasks import python, read_pids, start_script
from tfcomp.config.errors import ConfigError
from tfcomp.sweeps import scheduling
from tfcomp.sweeps.guarded_process import GUARD
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Pool, Task

PATIENCE = 200  # seconds, for a machine that is busy
ENDLESS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Shared by tests that do no harm to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling, "list_gpus", lambda: ["4", "6"])
        with Pool(SchedulerOptions(workers=2, threads=3)) as pool:
            yield pool


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pools say; workers are counted often enough to notice."""
    lines: list[str] = []
    monkeypatch.setattr(scheduling, "_COUNT_SECONDS", 0.1)
    monkeypatch.setattr(scheduling, "say", lines.append)
    return lines


@pytest.fixture
def own_pool(said: list[str]) -> Iterator[Pool]:
    """A pool to be harmed, of a user whose Dask is impatient."""
    options = SchedulerOptions(workers=2, worker_timeout=2)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "100ms"}):
        with Pool(options) as pool:
            yield pool


@pytest.fixture
def run_aside() -> Iterator[Callable[..., Future]]:
    """Waits for outcomes in a thread; the result is their list."""
    with ThreadPoolExecutor(1) as executor:
        yield lambda outcomes: executor.submit(list, outcomes)


def test_outcomes(pool: Pool, tmp_path: Path) -> None:
    failing = "print('at work'); print('error: --depth is bad\\n'); exit(2)"
    tasks = [
        python("good", tmp_path, "print('fine')"),
        python("bad", tmp_path, failing),
        python("crash", tmp_path, "1 / 0"),
        python("killed", tmp_path, "import os; os.kill(os.getpid(), 15)"),
        Task("silent", ["false"], tmp_path / "new" / "silent.log"),
        Task("absent", ["no-such-program"], tmp_path / "absent.log"),
    ]
    outcomes = {outcome.name: outcome for outcome in pool.run(tasks)}
    found = {n: (o.returncode, o.reason) for n, o in outcomes.items()}
    reason = "cannot start no-such-program: No such file or directory"
    assert found == {
        "good": (0, ""),
        "bad": (2, "--depth is bad"),
        "crash": (1, "ZeroDivisionError: division by zero"),
        "killed": (-15, "killed by SIGTERM"),
        "silent": (1, "exit status 1"),
        "absent": (1, reason),
    }
    assert all(0 < outcome.seconds < 60 for outcome in outcomes.values())
    assert (tmp_path / "good.log").read_text() == "fine\n"


def test_a_log_is_appended_to(pool: Pool, tmp_path: Path) -> None:
    for code in ("print('error: old')", "exit(3)"):
        (outcome,) = pool.run([python("task", tmp_path, code)])
    assert (tmp_path / "task.log").read_text() == "error: old\n"
    assert outcome.reason == "exit status 3"  # not what an earlier one said


def test_environment_of_a_task(pool: Pool, tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "time.sleep(1)\n"  # so that each worker gets one
        "names = 'OMP_NUM_THREADS', 'TF_NUM_INTRAOP_THREADS',"
        "'TF_NUM_INTEROP_THREADS', 'CUDA_VISIBLE_DEVICES'\n"
        "print(*(os.environ[name] for name in names))\n"
        "print(os.getsid(0) == os.getpid(), os.getcwd())\n"
    )
    list(pool.run([python(name, tmp_path, code) for name in "ab"]))
    lines = [(tmp_path / f"{name}.log").read_text().split() for name in "ab"]
    assert [line[:3] for line in lines] == [["3", "3", "3"]] * 2
    assert {line[3] for line in lines} == {"4", "6"}
    assert all(line[4:] == ["True", os.getcwd()] for line in lines)


def test_trials_that_share_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as fit are run, each on a GPU that it does not fill."""
    names = "CUDA_VISIBLE_DEVICES", "TF_FORCE_GPU_ALLOW_GROWTH"
    code = (
        "import os, time; time.sleep(1)\n"  # so that each worker gets one
        f"print(*(os.environ[name] for name in {names}))"
    )
    monkeypatch.setattr(scheduling, "list_gpus", lambda: ["4", "6"])
    options = SchedulerOptions(trials_per_gpu=2)
    with Pool(options) as pool:
        assert pool.workers == 4
        list(pool.run([python(name, tmp_path, code) for name in "abcd"]))
    found = [(tmp_path / f"{name}.log").read_text().split() for name in "abcd"]
    assert sorted(found) == [[gpu, "true"] for gpu in "4466"]


@pytest.mark.parametrize(
    ("gpus", "flags", "line"),
    [
        ("", {"trials_per_gpu": 2}, "--trials_per_gpu must be 1 on a"),
        ("0", {"workers": 2}, "--workers must be at most 1,"),
        (
            "01",
            {"workers": 7, "trials_per_gpu": 3},
            "--workers must be at most 6,",
        ),
    ],
)
def test_more_trials_than_gpus_hold(
    gpus: str,
    flags: dict[str, Any],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduling, "list_gpus", lambda: list(gpus))
    with pytest.raises(ConfigError, match=line):
        with Pool(SchedulerOptions(**flags)):
            pass


def test_first_tasks_run_first(pool: Pool, tmp_path: Path) -> None:
    code = "import time; print(time.time()); time.sleep(0.3)"
    names = [f"t{index}" for index in range(8)]
    list(pool.run([python(name, tmp_path, code) for name in names]))
    starts = [float((tmp_path / f"{n}.log").read_text()) for n in names]
    assert max(starts[:2]) < min(starts[4:])
    assert max(starts[:4]) < min(starts[6:])


def test_tasks_wait_for_the_worker_that_is_free_first(
    own_pool: Pool, tmp_path: Path, wait_for: Wait
) -> None:
    """Few are given away early, to wait behind a task of minutes."""
    quick = python("quick", tmp_path / "quick", "")
    endless = [python(name, tmp_path, ENDLESS) for name in "abcdefgh"]
    outcomes = own_pool.run([quick, *endless])
    assert next(outcomes).name == "quick"
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    queued = own_pool._cluster.scheduler.queued
    wait_for(lambda: len(queued) >= len(endless) - 2 * own_pool.workers)
    outcomes.close()


def test_a_killed_worker(
    own_pool: Pool,
    said: list[str],
    run_aside: Callable[..., Future],
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    """Its process dies with it, it comes back, and its task runs again."""
    release = tmp_path / "release"
    code = (
        "import os, pathlib, time\n"
        "print(os.getpid(), flush=True)\n"
        f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.05)\n"
    )
    tasks = [python(name, tmp_path, code) for name in "abc"]
    outcomes = run_aside(own_pool.run(tasks))
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    before = read_pids(tmp_path)
    psutil.Process(before[0]).parent().kill()
    wait_for(lambda: not is_running(before[0]))
    wait_for(lambda: len(read_pids(tmp_path)) == 3)
    assert is_running(before[1])
    wait_for(lambda: len(said) == 2)
    release.touch()
    ended = outcomes.result(PATIENCE)
    assert {outcome.name for outcome in ended} == set("abc")
    assert {outcome.returncode for outcome in ended} == {0}
    wait_for(lambda: not any(map(is_running, read_pids(tmp_path))))
    assert said == ["1 worker now, 2 before", "2 workers now, 1 before"]


def test_a_worker_that_dask_gives_up(
    own_pool: Pool,
    said: list[str],
    run_aside: Callable[..., Future],
    tmp_path: Path,
    wait_for: Wait,
) -> None:
    cluster = own_pool._cluster
    cluster.sync(cluster.workers[0].close, callback_timeout=PATIENCE)
    tasks = [python(name, tmp_path, ENDLESS) for name in "ab"]
    outcomes = run_aside(own_pool.run(tasks))
    wait_for(lambda: len(read_pids(tmp_path)) == 2)  # at the same time
    assert said == ["1 worker now, 2 before", "2 workers now, 1 before"]
    for pid in read_pids(tmp_path):
        os.kill(pid, signal.SIGTERM)
    ended = outcomes.result(PATIENCE)
    assert {outcome.reason for outcome in ended} == {"killed by SIGTERM"}


def test_no_worker_comes_back(
    own_pool: Pool,
    said: list[str],
    run_aside: Callable[..., Future],
    tmp_path: Path,
    wait_for: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = python("quick", tmp_path / "quick", "")
    endless = [python(name, tmp_path, ENDLESS) for name in "ab"]
    outcomes = own_pool.run([quick, *endless])
    assert next(outcomes).name == "quick"
    rest = run_aside(outcomes)
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", "/bin/false")
    for pid in read_pids(tmp_path):
        psutil.Process(pid).parent().kill()
    ended = rest.result(PATIENCE)
    assert [(o.name, o.returncode, o.reason) for o in ended] == [
        ("a", 1, "no worker for 2 s"),
        ("b", 1, "no worker for 2 s"),
    ]
    assert said[-2].startswith("0 workers now")
    assert said[-1] == (
        "no worker for 2 s (--worker_timeout): giving up what is left"
    )


def test_dask_knows_some_tasks_at_a_time(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, to leave a sweep of 10,000 trials took a minute, and failed."""
    monkeypatch.setattr(scheduling, "_KNOWN", 3)
    handed, submit = [], pool._client.submit

    def note(*arguments: object, **options: Any) -> Future:
        handed.append(options["key"])
        return submit(*arguments, **options)

    monkeypatch.setattr(pool._client, "submit", note)
    tasks = [python(str(n), tmp_path, "") for n in range(8)]
    for number, outcome in enumerate(pool.run(tasks), 1):
        assert outcome.reason == "" and len(handed) <= number + 3
    assert [key[1] for key in handed] == [task.name for task in tasks]
    assert number == 8


def test_who_waits_for_a_first_worker_says_so(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, nothing was said, for ever with --worker_timeout=0."""
    monkeypatch.setattr(scheduling, "_COUNT_SECONDS", 0.01)
    pool = Pool(SchedulerOptions(worker_timeout=1, scheduler="tcp://h:1"))
    monkeypatch.setattr(pool, "_count_workers", lambda: 0)
    assert not list(pool._wait(queue.SimpleQueue(), {object(): "a"}, lambda: 1))
    assert said == ["no worker for 0 s, waiting (--worker_timeout)"]


def test_an_outcome_that_is_lost_with_its_worker(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for it must not keep the pool from counting workers."""
    fetch, timeouts = distributed.Future.result, []

    def lose_first(future: distributed.Future, timeout: float | None) -> tuple:
        timeouts.append(timeout)
        if len(timeouts) == 1:
            raise TimeoutError
        return fetch(future, timeout)

    monkeypatch.setattr(distributed.Future, "result", lose_first)
    (outcome,) = pool.run([python("task", tmp_path, "")])
    assert outcome.returncode == 0
    assert timeouts == [scheduling._FETCH_SECONDS] * 2


def test_others_on_the_machine_are_kept_out(pool: Pool) -> None:
    address = pool._cluster.scheduler_address
    assert address.startswith("tls://127.0.0.1:")
    with pytest.raises(OSError):
        Client(address.replace("tls://", "tcp://"), timeout=2)


def test_leaving_early_kills_what_runs(
    own_pool: Pool, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    quick = python("quick", tmp_path / "quick", "")
    endless = [python(name, tmp_path, ENDLESS) for name in "abc"]
    outcomes = own_pool.run([endless[0], quick, *endless[1:]])
    assert next(outcomes).name == "quick"
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    outcomes.close()
    wait_for(lambda: not any(map(is_running, read_pids(tmp_path))))
    (outcome,) = own_pool.run([python("next", tmp_path / "next", "")])
    assert outcome.returncode == 0
    assert len(read_pids(tmp_path)) == 2  # the third never started


def test_a_process_whose_parent_is_gone_does_not_start() -> None:
    command = [sys.executable, *GUARD, "1", "echo", "started"]
    result = subprocess.run(command, capture_output=True)
    assert result.returncode == -signal.SIGKILL
    assert result.stdout == b""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_program_leaves_nothing(
    number: int, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    process = start_script(tmp_path)
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    family = [c.pid for c in psutil.Process(process.pid).children(True)]
    assert set(read_pids(tmp_path)) <= set(family)
    # A terminal sends an interrupt to the workers too.
    os.killpg(process.pid, number)
    output = process.communicate(timeout=PATIENCE)[0]
    wait_for(lambda: not any(map(is_running, family)))
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert output == "interrupted\n"
    assert len(read_pids(tmp_path)) == 2
