"""A sweep that is killed and continued ends in the tables of one that is not.

The trials are fake (`fake_trial.py`) and take a second; what is real is the
command, the scheduling and the killing.
"""

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.sweeps.conftest import IsRunning, Wait
from tests.sweeps.fake_sweep import (
    finish,
    list_flags,
    read_starts,
    read_table,
    start_sweep,
    use_fake_trials,
)
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep


def list_children(process: subprocess.Popen) -> list[int]:
    family = psutil.Process(process.pid).children(recursive=True)
    return [child.pid for child in family]


def count_finished(folder: Path) -> int:
    return len(list(folder.glob("s/trials/*/metrics.json")))


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_sweep_that_is_stopped_and_killed(
    number: int,
    undisturbed: bytes,
    tmp_path: Path,
    wait_for: Wait,
    is_running: IsRunning,
    monkeypatch: pytest.MonkeyPatch,
):
    """By Ctrl-C or `timeout`, with all of its processes; then alone."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    process = start_sweep(tmp_path, 1.6, "--workers=1")
    wait_for(lambda: read_starts(tmp_path))
    family = list_children(process)
    os.killpg(process.pid, number)
    output = finish(process, 128 + number)
    assert "Traceback" not in output
    wait_for(lambda: not any(map(is_running, family)))
    assert not list(place.iterdir())
    assert b"missing" in read_table(tmp_path)

    process = start_sweep(tmp_path, 1.2)
    wait_for(lambda: count_finished(tmp_path) > 1)
    family = list_children(process)
    process.kill()
    finish(process, -signal.SIGKILL)
    starts = read_starts(tmp_path)
    wait_for(lambda: not any(map(is_running, [*family, *starts])))
    finished = count_finished(tmp_path)
    assert 1 < finished < 4

    use_fake_trials(monkeypatch, PoolHere())
    assert sweep.main(["sweep", *list_flags(tmp_path)]) == 0
    assert read_table(tmp_path) == undisturbed
    assert len(read_starts(tmp_path)) == len(starts) + 4 - finished
