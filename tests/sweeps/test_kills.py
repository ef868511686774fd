"""A sweep that is killed and continued ends in the tables of one that is not.

The trials are fake (`fake_trial.py`) and take a second; what is real is the
command, the scheduling and the killing.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.sweeps.fake_sweep import finish, read_starts, read_table, start_sweep

Wait = Callable[[Callable[[], object]], None]
IsRunning = Callable[[int], bool]


def list_children(process: subprocess.Popen) -> list[int]:
    family = psutil.Process(process.pid).children(recursive=True)
    return [child.pid for child in family]


def count_finished(folder: Path) -> int:
    return len(list(folder.glob("s/trials/*/metrics.json")))


def test_a_trial_that_kills_its_worker_fails_and_is_run_by_the_next_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = ("--seeds=1", "--workers=1")
    monkeypatch.setenv("FAKE_DEATH", "3")

    output = finish(start_sweep(tmp_path, 0, *flags), 1)

    # At once, and at the end.
    assert output.count("its worker died 4 times") == 2
    table = read_table(tmp_path)
    assert table.count(b"finished") == 1
    assert table.count(b"failed") == 1

    monkeypatch.delenv("FAKE_DEATH")
    finish(start_sweep(tmp_path, 0, *flags))
    assert len(read_starts(tmp_path)) == 1 + 4 + 1
    assert read_table(tmp_path).count(b"finished") == 2


@pytest.mark.parametrize(
    "command", ["", pytest.param("timeout", marks=pytest.mark.slow)]
)
def test_a_sweep_that_is_stopped_and_killed_again_and_again(
    command: str,
    undisturbed: bytes,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By Ctrl-C or `timeout`, with all of its processes, and alone."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    process = start_sweep(tmp_path, 3.0)
    wait_for(lambda: len(read_starts(tmp_path)) == 2)
    family = list_children(process)
    if command:  # which tells the process and its group
        process.send_signal(signal.SIGTERM)
        os.killpg(process.pid, signal.SIGTERM)
        output = finish(process, 143)
    else:
        os.killpg(process.pid, signal.SIGINT)
        output = finish(process, 130)
    assert "Traceback" not in output
    wait_for(lambda: not any(map(is_running, family)))
    assert not list(place.iterdir())
    assert b"missing" in read_table(tmp_path)

    process = start_sweep(tmp_path, 1.5)
    wait_for(lambda: len(read_starts(tmp_path)) > 2)
    time.sleep(random.random())
    os.killpg(process.pid, signal.SIGKILL)
    finish(process, -signal.SIGKILL)

    process = start_sweep(tmp_path, 1.5)
    wait_for(lambda: count_finished(tmp_path) > 1)
    family = list_children(process)
    process.kill()
    finish(process, -signal.SIGKILL)
    starts = read_starts(tmp_path)
    wait_for(lambda: not any(map(is_running, [*family, *starts])))
    finished = count_finished(tmp_path)
    assert 1 < finished < 4
    finish(start_sweep(tmp_path, 0, "--workers=1"))
    assert read_table(tmp_path) == undisturbed
    assert len(read_starts(tmp_path)) == len(starts) + 4 - finished


def test_a_sweep_whose_reader_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `| head -1`: it ends without a word, and leaves nothing."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    complaint = tmp_path / "complaint"
    with open(complaint, "w") as file:
        process = start_sweep(tmp_path, 0.2, "--workers=1", stderr=file)
        assert "to run" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(200) == 141

    assert complaint.read_text() == ""
    assert not list(place.iterdir())
    assert b"missing" in read_table(tmp_path)


def test_shards_of_which_one_is_killed(
    undisturbed: bytes,
    tmp_path: Path,
    wait_for: Wait,
) -> None:
    """Both run at the same time; the killed one continues by its command."""
    flags = ("--workers=1", "--shard=1/2")
    killed = start_sweep(tmp_path, 3, *flags)
    other = start_sweep(tmp_path, 0.5, "--workers=1", "--shard=2/2")
    wait_for(lambda: len(read_starts(tmp_path)) >= 2)
    wait_for(lambda: list(tmp_path.glob("s/trials/*/progress")))
    os.killpg(killed.pid, signal.SIGKILL)
    finish(killed, -signal.SIGKILL)
    assert "2 trials to run" in finish(other)
    assert read_table(tmp_path).count(b"finished") < 4
    finish(start_sweep(tmp_path, 0, *flags))
    assert read_table(tmp_path) == undisturbed
