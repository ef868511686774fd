"""A sweep that is killed and continued ends in the tables of one that is not.

The trials are fake (`fake_trial.py`) and take a second; what is real is the
command, the scheduling and the killing.
"""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

NUM_TRIALS = 4
NUM_KILLS = 10
PATIENCE = 200  # seconds, for a machine that is busy
Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


def start(folder: Path, seconds: float, workers: int = 2) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "tests.sweeps.fake_sweep",
        "--flagfile=smoke.flags",
        f"--log_dir={folder}",
        f"--export_dir={folder / 'models'}",
        "--run_name=sweep",
        "--grid=depth=2,3",
        "--seeds=2",
        f"--workers={workers}",
    ]
    return subprocess.Popen(
        command,
        env={**os.environ, "FAKE_SECONDS": str(seconds)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen, status: int = 0) -> str:
    """Waits for the end, checks the exit status, returns what was printed."""
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, output
    return output


def read_starts(folder: Path) -> list[int]:
    """Process ids of all trials that were started."""
    file = folder / "sweep" / "starts.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [int(line.split()[0]) for line in lines]


def count_finished(folder: Path) -> int:
    return len(list(folder.glob("sweep/trials/*/metrics.json")))


def read_results(folder: Path) -> dict[str, bytes]:
    tables = sorted((folder / "sweep").glob("*.csv"))
    return {table.name: table.read_bytes() for table in tables}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert "[4/4]" in finish(start(folder, 0.0))
    assert len(read_starts(folder)) == NUM_TRIALS
    results = read_results(folder)
    assert results["trials.csv"].count(b"finished") == NUM_TRIALS
    return results


def test_a_trial_that_kills_its_worker_fails_and_is_run_by_the_next_start(
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_DEATH", "3")
    output = finish(start(tmp_path, 0.0), 1)
    assert output.count("its worker died 4 times") == 4  # as each ends, and
    table = read_results(tmp_path)["trials.csv"]  # at the end
    assert table.count(b"finished") == table.count(b"failed") == 2
    monkeypatch.delenv("FAKE_DEATH")
    finish(start(tmp_path, 0.0))
    assert len(read_starts(tmp_path)) >= 2 + 4 + 2
    assert read_results(tmp_path) == undisturbed


@pytest.mark.parametrize("command", ["", "timeout"])
def test_a_sweep_that_is_told_to_stop(
    command: str,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By Ctrl-C, or by `timeout`: no process and no folder stay behind."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    process = start(tmp_path, 3.0)
    wait_for(lambda: len(read_starts(tmp_path)) == 2)
    family = [c.pid for c in psutil.Process(process.pid).children(True)]
    if command:  # which tells the process and its group
        process.send_signal(signal.SIGTERM)
        os.killpg(process.pid, signal.SIGTERM)
    else:
        os.killpg(process.pid, signal.SIGINT)
    assert "Traceback" not in finish(process, 143 if command else 130)
    wait_for(lambda: not any(map(is_running, family)))
    assert not list(place.iterdir())
    assert b"missing" in read_results(tmp_path)["trials.csv"]
    finish(start(tmp_path, 0.0))
    assert read_results(tmp_path) == undisturbed


def test_a_killed_sweep(
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    process = start(tmp_path, 1.0)
    wait_for(
        lambda: count_finished(tmp_path) and len(read_starts(tmp_path)) > 2
    )
    family = [c.pid for c in psutil.Process(process.pid).children(True)]
    process.kill()
    finish(process, -signal.SIGKILL)
    starts = read_starts(tmp_path)
    wait_for(lambda: not any(map(is_running, {*family, *starts})))
    finished = count_finished(tmp_path)
    assert 0 < finished < NUM_TRIALS
    finish(start(tmp_path, 0.0))
    assert read_results(tmp_path) == undisturbed
    assert len(read_starts(tmp_path)) == len(starts) + NUM_TRIALS - finished


def kill_one(pid: int, chance: random.Random) -> list[int]:
    """Kills a command or one of its workers; returns all its processes."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):  # it ends just now
        command = psutil.Process(pid)
        family = command.children(recursive=True)
        workers = [p for p in family if "spawn_main" in " ".join(p.cmdline())]
        victim = chance.choice([command, *workers])
        is_told = victim is command and chance.random() < 0.5
        victim.send_signal(signal.SIGTERM if is_told else signal.SIGKILL)
    return [process.pid for process in family]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_random_kills(
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
) -> None:
    """The same tables, whatever dies and goes on; no process is left."""
    chance, kills = random.Random(0), 0
    for number in itertools.count(1):
        folder, status = tmp_path / str(number), -1
        while status:
            process, family = start(folder, 2.0), list[int]()
            while kills < NUM_KILLS and process.poll() is None:
                time.sleep(chance.uniform(0, 8))
                family += kill_one(process.pid, chance)
                kills += 1
            process.communicate(timeout=PATIENCE)
            status = process.returncode
            wait_for(lambda pids=family: not any(map(is_running, pids)))
        assert read_results(folder) == undisturbed
        print(f"{kills} kills, {number} sweeps: equal")
        if kills >= NUM_KILLS:
            return
