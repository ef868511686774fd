"""The pipeline as a user runs it, from nothing to a pushed model.

The tests of the smoke profile go on with one folder, in their order.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from pipelines.compile import compile_pipeline
from pipelines.pipeline import STEPS
from pipelines.profile import SHIPPED
from pipelines.profile import load_profile
from pipelines.steps.example_gen.executor import list_datasets
from tfcomp.datasets.materialized import materialize

# Whole pipelines take minutes where other work is under way.
pytestmark = pytest.mark.timeout(900)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a pipeline of a test works."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / "root" / "work"

    def make_command(self, *flags: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "pipelines.run_local",
            f"--pipeline_root={self.path / 'root'}",
            f"--export_dir={self.path / 'out'}",
            "--workers=2",
            *flags,
        ]

    def run(self, *flags: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.make_command(*flags),
            capture_output=True,
            text=True,
            cwd=self.path,
        )

    def resume(self, profile: str | Path = "smoke") -> tuple[str, dict]:
        """What a second start prints, and the last state of each step."""
        result = self.run(f"--profile={profile}", "--resume")
        assert result.returncode == 0, result.stderr
        assert self.list_versions() == [".lock", "1"]
        return result.stdout, read_states(result.stdout)

    def fail(self, profile: str | Path = "smoke") -> tuple[str, dict]:
        """The line of an error, which pushes nothing, and the states."""
        result = self.run(f"--profile={profile}", "--resume")
        assert result.returncode == 1
        assert self.list_versions() == [".lock", "1"]
        (line,) = result.stderr.splitlines()
        return line, read_states(result.stdout)

    def list_versions(self) -> list[str]:
        return sorted(os.listdir(self.path / "out" / "smoke"))

    def list_states(self) -> dict[Path, int]:
        """When each file of the runs was changed."""
        files = (self.work / "runs" / "logs").rglob("*/trials/*/*")
        return {path: path.stat().st_mtime_ns for path in files}


def read_states(output: str) -> dict[str, str]:
    """The last state of each step in the progress of a run."""
    rows = [line.split() for line in output.splitlines()]
    return {r[1]: r[0] for r in rows if len(r) > 1 and r[1] in STEPS}


@pytest.fixture(scope="module")
def smoke(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Place, subprocess.CompletedProcess]:
    """The smoke profile, from nothing."""
    place = Place(tmp_path_factory.mktemp("smoke"))
    return place, place.run("--profile=smoke")


def test_from_nothing_to_a_pushed_model(smoke) -> None:
    place, result = smoke
    assert result.returncode == 0, result.stdout + result.stderr
    assert read_states(result.stdout) == dict.fromkeys(STEPS, "done")
    # The flood of the SDK is in the log and nowhere else.
    assert result.stderr == "" and len(result.stdout.splitlines()) < 30
    assert "KFP Executor" in (place.path / "root/pipeline.log").read_text()
    assert "[2/2]" in result.stdout
    version = place.path / "out" / "smoke" / "1"
    evidence = version / "assets.extra" / "evaluation.json"
    verdict = json.loads(evidence.read_text())
    assert verdict["blessed"] and len(verdict["checks"]) == 3
    assert all(check["count"] == 2 for check in verdict["checks"])
    assert (version / "saved_model.pb").exists()
    assert (place.work / "report" / "report.html").exists()
    anomalies = place.path.glob("root/kfp/*/example-validator/anomalies")
    assert json.loads(next(anomalies).read_text())["anomalies"] == []


def test_resume_repeats_nothing(smoke) -> None:
    place, _ = smoke
    before = place.list_states()
    printed, states = place.resume()
    assert states["example_validator"] == states["report"] == "kept"
    assert "nothing new, the model is" in printed
    assert "trials to run" not in printed
    assert place.list_states() == before


def test_compiled_pipeline_runs_here(smoke, tmp_path: Path) -> None:
    place, _ = smoke
    path = tmp_path / "pipeline.yaml"
    compile_pipeline(load_profile("smoke").to_json(), path)
    script = (
        "import sys\n"
        "from kfp import components, local\n"
        "local.init(local.SubprocessRunner(use_venv=False), sys.argv[2])\n"
        "pipeline = components.load_component_from_file(sys.argv[1])\n"
        "pipeline(work_dir=sys.argv[3], export_dir=sys.argv[4])\n"
    )
    arguments = [path, tmp_path / "kfp", place.work, place.path / "out"]
    result = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr
    assert "nothing new, the model is" in result.stdout
    assert place.list_versions() == [".lock", "1"]


# Planted failures: stopped at the right step, nothing pushed


def test_bad_model_is_stopped(smoke, tmp_path: Path) -> None:
    place, _ = smoke
    profile = tmp_path / "smoke"
    shutil.copytree(SHIPPED / "smoke", profile)
    text = (profile / "profile.toml").read_text()
    stricter = text.replace("{below = 0.1}", "{below = 1e-9}")
    (profile / "profile.toml").write_text(stricter)
    line, states = place.fail(profile)
    assert line.startswith("error: evaluator: not blessed: id_relative_mse ")
    assert "must be below 1e-09; nothing was pushed" in line
    assert states["evaluator"] == "stopped" and states["report"] == "done"
    assert states["infra_validator"] == states["pusher"] == "skipped"


def test_broken_saved_model_is_stopped(smoke, tmp_path: Path) -> None:
    place, _ = smoke
    evaluation = json.loads((place.work / "evaluation.json").read_text())
    models = place.work / "runs" / "saved_models" / "smoke_low_rank"
    name = evaluation["candidate"]["name"]
    (data,) = (models / name).glob("*/variables/*.data*")
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    # It was found good before, and may be damaged since.
    try:
        line, states = place.fail()
    finally:
        data.write_bytes(whole)
    assert line.startswith("error: infra_validator: the SavedModel cannot be ")
    assert states["evaluator"] == "done"
    assert states["infra_validator"] == "failed"
    assert states["pusher"] == "skipped" and states["report"] == "kept"


def test_leak_is_stopped(
    smoke, leaking_data: Callable[[], AbstractContextManager]
) -> None:
    place, _ = smoke
    (config,) = list_datasets(load_profile("smoke"))
    leaky = materialize(config, place.work / "examples")  # was there before
    shutil.rmtree(leaky)
    with leaking_data():
        materialize(config, place.work / "examples")
    line, states = place.fail()
    assert line.startswith(
        "error: example_validator: leak: 1 training examples lie in the "
        "region corner:7, the first at [7.0, 7.0] "
    )
    skipped = set(STEPS) - {"example_gen", "example_validator"}
    assert {s for s in states if states[s] == "skipped"} == skipped
    # What is removed is written again, and trials that are done stay.
    shutil.rmtree(leaky)
    before = place.list_states()
    _, states = place.resume()
    assert states["example_validator"] == "done"
    assert place.list_states() == before


# Killed in the middle


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_while_it_trains(
    how: signal.Signals,
    write_profile: Callable[..., Path],
    are_gone: Callable[[str], bool],
    tmp_path: Path,
) -> None:
    """No training is left behind, and a second start finishes it."""
    profile = write_profile("--seeds=4", "--steps_per_epoch=200")
    places = [Place(tmp_path / name) for name in ("killed", "whole")]
    for place in places:
        place.path.mkdir()
    marker = {"TFCOMP_TEST": str(tmp_path)}
    with subprocess.Popen(
        places[0].make_command(f"--profile={profile}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=os.environ | marker,
    ) as process:
        for line in process.stdout:
            if "[1/4]" in line:
                break
        time.sleep(2)  # other trials are under way
        process.send_signal(how)
    assert are_gone(f"TFCOMP_TEST={tmp_path}")
    again = places[0].run(f"--profile={profile}", "--resume")
    whole = places[1].run(f"--profile={profile}")
    assert again.returncode == whole.returncode == 0, again.stderr
    assert "finished already" in again.stdout
    assert read_states(again.stdout)["example_validator"] == "kept"
    tables = [
        (place.work / "runs" / "logs" / "tiny" / "trials.csv").read_text()
        for place in places
    ]
    assert tables[0] == tables[1]
