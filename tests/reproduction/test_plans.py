"""Plans of studies, and a plan that is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tfcomp
from reproduction import FLAGFILES
from reproduction.command import main
from reproduction.plans import PLANS, list_works
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import SUFFIX

# The plan of a study is one sweep of two small networks.
TINY = """
import sys
from reproduction.command import main
from reproduction.plans import PLANS
PLANS["decoders"] = ["tiny.flags"]
if __name__ == "__main__":
    sys.exit(main("decoders", sys.argv))
"""
ROOT = Path(__file__).parents[2]
PATIENCE = 400  # seconds, for a machine that is busy


def test_every_plan_names_shipped_flagfiles() -> None:
    patterns = [pattern for plan in PLANS.values() for pattern in plan]
    assert len(patterns) > 10
    for pattern in patterns:
        assert list(FLAGFILES.glob(f"{pattern}{SUFFIX}")), pattern


def test_a_plan_is_listed(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    assert main("claims", ["claims", "--plan", f"--log_dir={tmp_path}"]) == 0
    table = capsys.readouterr().out
    assert "| hard_given | 20 | 0 |" in table
    assert "| threshold_donut | 24 | 0 |" in table
    assert list(tmp_path.iterdir()) == []  # nothing was written


def test_a_plan_of_no_flagfile() -> None:
    with pytest.raises(RunError, match="got 'no_such'"):
        list_works(["no_such"])


FLAGS = """--flagfile=smoke.flags
--run_name=tiny
--seeds=2
--epochs=2
--width=8
--measure
"""


def start(folder: Path) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    (folder / "tiny.flags").write_text(FLAGS)
    flags = ["--run", f"--log_dir={folder}", f"--output={folder}/report"]
    return subprocess.Popen(
        [sys.executable, "-c", TINY, *flags],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd=folder,
        text=True,
    )


def finish(folder: Path) -> str:
    with start(folder) as process:
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    return output


def read_results(folder: Path) -> list[Any]:
    """Scores and metrics, without times and places."""
    runs, numbers = tfcomp.read_runs(folder / "tiny")
    is_score = ~numbers["name"].str.startswith("train/")
    return [sorted(runs["run"]), numbers[is_score].to_csv()]


@pytest.mark.slow
@pytest.mark.timeout(3 * PATIENCE)
def test_a_killed_plan_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with start(killed) as process:
        end = time.monotonic() + PATIENCE
        while not list(killed.glob("tiny/trials/*/metrics.json")):
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    assert "2 trials to run" in finish(whole)
    output = finish(killed)
    assert "1 are finished already" in output or "2 trials to run" in output
    assert read_results(killed) == read_results(whole)
    assert (killed / "report/decoders.csv").exists()
    assert "to run" not in finish(killed)  # a repeat trains nothing
