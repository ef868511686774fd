"""What studies say that they would run, and a plan that is killed."""

import dataclasses
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from tests.studies.claims.planted import Run, gather
from tfcomp import study as command
from tfcomp.config.errors import RunError
from tfcomp.studies.study import STUDIES, find_in_evidence, list_works

SCRIPT = Path(__file__).with_name("tiny_study.py")
DOCS = Path(__file__).parents[2] / "docs"
PATIENCE = 400  # seconds, for a machine that is busy


@pytest.mark.parametrize(
    ("name", "part", "items"),
    [
        ("claims", "penalties", 40),
        ("claims", "threshold_donut_fresh", 40),
        ("claims", "mlp_fresh", 10),
        ("decoders", "decoders_rates", 180),
        ("thresholds", "threshold", 30),
        ("paper", "cnn_depths", 8),
    ],
)
def test_every_study_has_a_plan(
    name: str,
    part: str,
    items: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    flags = ["--plan", f"--log_dir={tmp_path / 'logs'}"]
    assert command.main(["tfcomp study", name, *flags]) == 0
    table = capsys.readouterr().out
    assert f"| {part} | {items} | 0 | 0 | not known |" in table
    assert list(tmp_path.iterdir()) == []  # nothing was written
    assert list(STUDIES) == command.NAMES


def test_evidence_counts_by_flags_and_its_times_are_averaged() -> None:
    (work,) = list_works(["smoke --seeds=4 --run_name=tiny"], "--log_dir=none")
    flags = [trial.config.to_flags() for trial in work.items]

    def plant(flags: dict, seconds: float) -> Run:
        return Run(flags, {"train": {"seconds": seconds}})

    def measure(*runs: Run) -> tuple[int, float]:
        num_known, seconds = find_in_evidence(work, gather(runs))
        return num_known, -1 if math.isnan(seconds) else seconds

    assert measure() == (0, -1)
    same = plant(flags[0], 10.0), plant(flags[1], 20.0)
    assert measure(*same) == (2, 4 * 15.0)
    assert measure(plant(flags[0] | {"learning_rate": 0.5}, 40.0)) == (0, -1)
    # A run of an earlier version lacks its time.
    silent = dataclasses.replace(same[0], metrics={})
    assert measure(silent) == (1, -1)


def test_packed_campaign_is_found_in_the_plan(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    packed = DOCS / "evidence/hard_given.csv.xz"
    flags = ["--plan", f"--log_dir={tmp_path}", f"--runs={packed}"]
    assert command.main(["tfcomp study", "claims", *flags]) == 0
    (line,) = [
        row
        for row in capsys.readouterr().out.splitlines()
        if "| hard_given |" in row
    ]
    assert "| 20 | 0 | 20 |" in line and "not known" not in line


def test_what_every_study_can_is_in_its_help(
    capsys: pytest.CaptureFixture,
) -> None:
    for name in command.NAMES:
        assert command.main(["tfcomp study", name, "--help"]) == 0
        text = capsys.readouterr().out
        assert all(f"--{f}=" in text for f in ("pack", "plan", "run"))


def test_a_study_of_recorded_networks_has_no_plan() -> None:
    with pytest.raises(RunError, match="prediction trains nothing"):
        command.main(["tfcomp study", "prediction", "--plan"])


def test_a_plan_without_its_flagfile_is_one_line() -> None:
    with pytest.raises(RunError, match="got 'no_such'"):
        list_works(["no_such"])


def start(folder: Path) -> subprocess.Popen:
    flags = ["--run", f"--log_dir={folder}", f"--output={folder}/report"]
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *flags],
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


def read_results(folder: Path) -> dict[str, str]:
    """Scores, measures, weights and judgement, without times and places."""
    found = {}
    for run in sorted((folder / "tiny/trials").iterdir()):
        metrics = json.loads((run / "metrics.json").read_text())
        del metrics["train"]
        with zipfile.ZipFile(run / "model.keras") as model:  # not its date
            weights = hashlib.sha256(model.read("model.weights.h5"))
        found[run.name] = f"{metrics} {weights.hexdigest()}"
    table = (folder / "report/decoders.csv").read_text()
    return found | {"judged": table.rpartition(",")[0].partition("seconds")[0]}


@pytest.mark.slow
@pytest.mark.timeout(3 * PATIENCE)
def test_a_killed_plan_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with start(killed) as process:
        end = time.monotonic() + PATIENCE
        while len(list(killed.glob("tiny/trials/*/metrics.json"))) < 1:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    assert "2 trials to run" in finish(whole)
    output = finish(killed)
    assert "1 are finished already" in output or "2 trials to run" in output
    assert read_results(killed) == read_results(whole)
    before = (killed / "report/decoders.csv").stat().st_mtime_ns
    assert "to run" not in finish(killed)  # a repeat trains nothing
    assert (killed / "report/decoders.csv").stat().st_mtime_ns >= before
