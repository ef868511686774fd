"""Plans of studies, and a plan that is killed."""

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tfcomp
from reproduction import FLAGFILES
from reproduction.claims import Evidence
from reproduction.command import main
from reproduction.plans import PLANS, find_in_evidence, list_works
from tests.reproduction.claims.worlds import plant_run
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import SUFFIX
from tfcomp.tables.flatten import Run
from tfcomp.tables.read import Results

# The plan of a study is one sweep of two small networks.
TINY = """
import sys
from reproduction.command import main
from reproduction.plans import PLANS
plan = "smoke --run_name=tiny --seeds=2 --epochs=2 --width=8 --measure"
PLANS["decoders"] = [plan]
if __name__ == "__main__":
    sys.exit(main("decoders", sys.argv))
"""
EVIDENCE = Path(__file__).parents[2] / "reproduction" / "evidence"
PATIENCE = 400  # seconds, for a machine that is busy


def test_every_plan_names_shipped_flagfiles() -> None:
    patterns = [line.split()[0] for p in PLANS.values() for line in p]
    assert len(patterns) > 15
    for pattern in patterns:
        assert list(FLAGFILES.glob(f"{pattern}{SUFFIX}")), pattern


def test_packed_campaign_is_found_in_the_plan(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    found = tmp_path / "threshold_donut"  # searches count by flags, not names
    shutil.copytree(EVIDENCE / "threshold_small", found)
    packed = f"{EVIDENCE}/hard_rendering.csv.xz,{found}"
    flags = ["--plan", f"--log_dir={tmp_path}/no", f"--runs={packed}"]
    assert main("claims", ["claims", *flags]) == 0
    table = capsys.readouterr().out
    (line,) = [x for x in table.splitlines() if "| hard_given |" in x]
    assert "| 20 | 0 | 20 |" in line and "not known" not in line
    for row in ("donut | 24 | 0 | 0", "small | 30 | 0 | 30"):
        assert f"| threshold_{row} | not known |" in table
    assert [*tmp_path.iterdir()] == [found]  # nothing was written


def test_evidence_counts_by_flags_and_its_times_are_averaged() -> None:
    (work,) = list_works(["smoke --seeds=4 --run_name=tiny"], "--log_dir=none")
    flags = [trial.config.to_flags() for trial in work.items]

    def plant(flags: dict, **numbers: float) -> Run:
        return plant_run(flags, flags["seed"], numbers)

    def measure(*runs: Run) -> tuple[int, float]:
        evidence = Evidence(Results(runs))
        num_known, seconds = find_in_evidence(work, evidence)
        return num_known, -1 if math.isnan(seconds) else seconds

    assert measure() == (0, -1)
    same = (
        plant(flags[0], **{"train/seconds": 10.0}),
        plant(flags[1], **{"train/seconds": 20.0}),
    )
    assert measure(*same) == (2, 4 * 15.0)
    assert measure(plant(flags[0] | {"learning_rate": 0.5})) == (0, -1)
    # A run of an earlier version lacks its time.
    assert measure(plant(flags[0])) == (1, -1)


def test_a_plan_of_no_flagfile() -> None:
    with pytest.raises(RunError, match="got 'no_such'"):
        list_works(["no_such"])


def start(folder: Path) -> subprocess.Popen:
    flags = ["--run", f"--log_dir={folder}", f"--output={folder}/report"]
    return subprocess.Popen(
        [sys.executable, "-c", TINY, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
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
