"""Commands that run one after the other in a process that stays warm."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tfcomp.sweeps import warm_process
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import Outcome, Pool, Task
from tfcomp.sweeps.warm_process import retire, run_warm

# Prints its process; then it does what its first argument says.
COMMAND = """
import os, sys, time
from tfcomp.config.errors import RunError
def main(argv):
    print(os.getpid(), flush=True)
    match argv[1]:
        case "refuse": raise RunError("no such thing")
        case "crash": 1 / 0
        case "die": os.kill(os.getpid(), 9)
        case "wait": time.sleep(600)
    return int(argv[1])
if __name__ == "__main__":
    main(sys.argv)
"""
IsRunning = Callable[[int], bool]
Run = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "command.py").write_text(COMMAND)
    return tmp_path


def read_pid(log: Path) -> int:
    return int(log.read_text().split()[0])


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    """Runs a command in the warm process of the tests' thread."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(name: str, word: str, setup: str = "", cancelled=lambda: False):
        request = {
            "module": "command",
            "arguments": [word],
            "folder": str(folder),
            "log": str(folder / name),
        }
        return run_warm(request, environment, setup, cancelled)

    yield run
    retire()


def list_pids(folder: Path, names: str) -> list[int]:
    return [read_pid(folder / name) for name in names]


def test_one_process_for_all(run: Run, folder: Path) -> None:
    assert [run(name, "0") for name in "abc"] == [0, 0, 0]
    pids = list_pids(folder, "abc")
    assert pids[0] == pids[1] == pids[2] != os.getpid()
    assert (folder / "a").read_text() == f"{pids[0]}\n"


@pytest.mark.parametrize(
    ("word", "status", "last"),
    [
        ("3", 3, ""),
        ("refuse", 2, "error: no such thing"),
        ("crash", 1, "ZeroDivisionError: division by zero"),
        ("die", -9, ""),
    ],
)
def test_a_failure_costs_one_command(
    run: Run, folder: Path, word: str, status: int, last: str
) -> None:
    words = ["0", word, "0"]
    statuses = [run(n, w) for n, w in zip("abc", words, strict=True)]
    assert statuses == [0, status, 0]
    first, second, third = list_pids(folder, "abc")
    assert first == second != third
    assert (folder / "b").read_text().endswith(f"{last}\n")
    assert not psutil.pid_exists(first)


def test_another_setup_is_another_process(run: Run, folder: Path) -> None:
    for name, setup in zip("abc", ["1", "2", "2"], strict=True):
        run(name, "0", setup)
    first, second, third = list_pids(folder, "abc")
    assert first != second == third


@pytest.mark.parametrize("limit", ["MAX_COMMANDS", "MAX_MEGABYTES"])
def test_a_process_is_replaced(
    run: Run, folder: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_process, limit, 1)
    run("a", "0")
    run("b", "0")
    assert len(set(list_pids(folder, "ab"))) == 2


def test_a_cancelled_command(run: Run, folder: Path) -> None:
    def is_at_work() -> bool:
        log = folder / "a"
        return log.exists() and log.read_text().endswith("\n")

    assert run("a", "wait", cancelled=is_at_work) == -9
    assert not psutil.pid_exists(read_pid(folder / "a"))


def test_an_idle_process_ends() -> None:
    code = (
        "import socket, sys; from tfcomp.sweeps import warm_process as server;"
        "server.IDLE_SECONDS = 1; ours, theirs = socket.socketpair();"
        "server.main(['', str(theirs.detach())])"
    )
    ended = subprocess.run([sys.executable, "-c", code], timeout=100)
    assert ended.returncode == -14  # SIGALRM


def run_all(folder: Path, isolate: bool) -> list[Outcome]:
    command = [sys.executable, "-m", "command", "0"]
    tasks = [Task(n, command, folder / n, setup="") for n in "ab"]
    options = SchedulerOptions(workers=1, isolate=isolate)
    with Pool(options) as pool:
        return list(pool.run(tasks))


@pytest.mark.parametrize("isolate", [False, True])
def test_workers(
    folder: Path,
    isolate: bool,
    monkeypatch: pytest.MonkeyPatch,
    is_running: IsRunning,
) -> None:
    monkeypatch.chdir(folder)
    paths = os.pathsep.join(sys.path)
    monkeypatch.setenv("PYTHONPATH", paths)
    outcomes = run_all(folder, isolate)
    assert [outcome.reason for outcome in outcomes] == ["", ""]
    first, second = list_pids(folder, "ab")
    assert (first != second) == isolate
    assert not is_running(first) and not is_running(second)
