"""Tasks on Dask: outcomes, threads, deaths of all kinds, no orphans."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import LocalCluster

from tfcomp.config.errors import ConfigError
from tfcomp.sweeps.guarded_process import GUARD
from tfcomp.sweeps.scheduling import Pool
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.scheduling import Task
from tfcomp.sweeps.scheduling import run_tasks

SCRIPT = Path(__file__).with_name("pool_script.py")
ENDLESS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


def python(name: str, folder: Path, code: str) -> Task:
    return Task(name, [sys.executable, "-c", code], folder / f"{name}.log")


def read_pids(folder: Path) -> list[int]:
    text = "".join(path.read_text() for path in folder.glob("*.log"))
    return [int(word) for word in text.split()]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(SchedulerOptions(workers=2, threads=3, gpus=("4", "6"))) as pool:
        yield pool


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


def test_first_tasks_run_first(pool: Pool, tmp_path: Path) -> None:
    code = "import time; print(time.time()); time.sleep(0.3)"
    names = [f"t{index}" for index in range(8)]
    list(pool.run([python(name, tmp_path, code) for name in names]))
    starts = [float((tmp_path / f"{n}.log").read_text()) for n in names]
    assert max(starts[:2]) < min(starts[4:])
    assert max(starts[:4]) < min(starts[6:])


def test_a_killed_worker(
    pool: Pool, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    """Its process dies with it, and its task runs again."""
    release = tmp_path / "release"
    code = (
        "import os, pathlib, time\n"
        "print(os.getpid(), flush=True)\n"
        f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.05)\n"
    )
    outcomes = pool.run([python(name, tmp_path, code) for name in "abc"])
    first = next_in_background(outcomes)
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    before = read_pids(tmp_path)
    psutil.Process(before[0]).parent().kill()
    wait_for(lambda: not is_running(before[0]))
    wait_for(lambda: len(read_pids(tmp_path)) == 3)
    assert is_running(before[1])
    release.touch()
    ended = [first(), *outcomes]
    assert {outcome.name for outcome in ended} == set("abc")
    assert {outcome.returncode for outcome in ended} == {0}
    wait_for(lambda: not any(map(is_running, read_pids(tmp_path))))


def next_in_background(outcomes: Iterator) -> Callable:
    """Starts an iterator, which submits the tasks, without waiting."""
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(1)
    future = executor.submit(next, outcomes)
    executor.shutdown(wait=False)
    return future.result


def test_leaving_early_kills_what_runs(
    pool: Pool, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    quick = python("quick", tmp_path / "quick", "")
    endless = [python(name, tmp_path, ENDLESS) for name in "abc"]
    outcomes = pool.run([endless[0], quick, *endless[1:]])
    assert next(outcomes).name == "quick"
    wait_for(lambda: len(read_pids(tmp_path)) == 2)
    outcomes.close()
    wait_for(lambda: not any(map(is_running, read_pids(tmp_path))))
    (outcome,) = pool.run([python("next", tmp_path / "next", "")])
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
    output = process.communicate(timeout=300)[0]
    wait_for(lambda: not any(map(is_running, family)))
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert output == "interrupted\n"
    assert len(read_pids(tmp_path)) == 2


def start_script(folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def remote() -> Iterator[str]:
    """The address of a scheduler that is not ours."""
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster.scheduler_address


def test_a_remote_scheduler(
    remote: str, tmp_path: Path, wait_for: Wait, is_running: IsRunning
) -> None:
    options = SchedulerOptions(scheduler=remote)
    tasks = [python(name, tmp_path / "a", "print(1)") for name in "ab"]
    outcomes = list(run_tasks(tasks, options))
    assert [outcome.returncode for outcome in outcomes] == [0, 0]
    # Its worker lives on; what it runs must not when its client has died.
    process = start_script(tmp_path, remote)
    wait_for(lambda: read_pids(tmp_path))
    process.kill()
    process.communicate()
    (pid,) = read_pids(tmp_path)
    wait_for(lambda: not is_running(pid))
    (outcome,) = run_tasks(tasks[:1], options)
    assert outcome.returncode == 0
    assert read_pids(tmp_path) == [pid]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_no_scheduler_at_the_address(address: str) -> None:
    start = time.monotonic()
    with pytest.raises(ConfigError, match="--scheduler must be the address"):
        list(run_tasks([], SchedulerOptions(scheduler=address)))
    assert time.monotonic() - start < 15


def test_options() -> None:
    with pytest.raises(ConfigError, match="--workers must be at least 0"):
        SchedulerOptions(workers=-1)
    with pytest.raises(ConfigError, match="--threads must be at least 0"):
        SchedulerOptions(threads=-1)
    with pytest.raises(ConfigError, match="--workers must be left out"):
        SchedulerOptions(workers=2, scheduler="tcp://localhost:8786")
