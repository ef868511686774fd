"""The command, killed in the middle and started again: the same tables."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 900  # seconds, for a machine that is busy


def start(folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [
            sys.executable,
            *("-m", "tfcomp", "study", "prediction", "predict_smoke"),
            *("--workers=2", f"--log_dir={folder}"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def read_results(folder: Path) -> dict[str, bytes]:
    """Every record and table, and the numbers behind the figures."""
    study = folder / "predict_smoke"
    files = [*study.glob("networks/*.json"), *study.rglob("*.csv")]
    return {str(f.relative_to(study)): f.read_bytes() for f in files}


@pytest.mark.slow
@pytest.mark.timeout(3 * PATIENCE)
def test_killed_and_started_again(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with start(killed) as process:
        end = time.monotonic() + PATIENCE
        while len(list(killed.rglob("networks/*.json"))) < 3:
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    for folder in (killed, whole):
        with start(folder) as process:
            output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        assert "16 networks" in output
    results = read_results(whole)
    assert {"networks.csv", "explore.csv", "confirm.csv"} < results.keys()
    assert read_results(killed) == results
