"""The pipeline as a user runs it, from nothing to a pushed model.

The tests of the smoke profile go on with one folder, in their order. The first
start is a process whose steps are processes; later ones have their steps in the
process of the test (`steps_here`).
"""

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
from kfp import components, local

from pipelines import run_local
from pipelines.compile import compile_pipeline
from pipelines.pipeline import STEPS
from pipelines.pipeline_runner import PipelineError
from pipelines.profile import SHIPPED, load_profile
from pipelines.steps.example_gen import list_datasets
from tfcomp.datasets.materialized import materialize

# Whole pipelines take minutes where other work is under way.
pytestmark = pytest.mark.timeout(900)

Resume = Callable[..., tuple[str, dict[str, str]]]
NAME = "pipeline_smoke"  # what the profile pushes its model as


@dataclasses.dataclass
class Place:
    """Where a pipeline of a test works, and what came of its first start."""

    path: Path
    first: subprocess.CompletedProcess | None = None

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

    def list_versions(self) -> list[str]:
        return sorted(os.listdir(self.path / "out" / NAME))

    def list_states(self) -> dict[Path, int]:
        """When each file of the runs was changed."""
        files = (self.work / "runs" / "logs").rglob("*/trials/*/*")
        return {path: path.stat().st_mtime_ns for path in files}


def read_states(output: str) -> dict[str, str]:
    """The last state of each step in the progress of a run."""
    rows = [line.split() for line in output.splitlines()]
    return {r[1]: r[0] for r in rows if len(r) > 1 and r[1] in STEPS}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The smoke profile, from nothing."""
    place = Place(tmp_path_factory.mktemp("smoke"))
    place.first = place.run("--profile=smoke")
    return place


@pytest.fixture
def resume(
    smoke: Place, steps_here: None, capsys: pytest.CaptureFixture
) -> Resume:
    """A second start, which pushes nothing.

    It returns what it prints, or the one line of its error; the steps' states.
    """

    def run(profile: str | Path = "smoke", status: int = 0) -> tuple:
        flags = smoke.make_command(f"--profile={profile}", "--resume")[3:]
        capsys.readouterr()  # of the test so far
        line = ""
        try:
            assert (run_local.main(["", *flags]), status) == (0, 0)
        except PipelineError as error:
            line = str(error)
            assert error.status == status and "\n" not in line
        captured = capsys.readouterr()
        assert captured.err == ""
        assert smoke.list_versions() == [".lock", "1"]
        return line or captured.out, read_states(captured.out)

    return run


def test_from_nothing_to_a_pushed_model(smoke: Place) -> None:
    result = smoke.first
    assert result.returncode == 0, result.stdout + result.stderr
    assert read_states(result.stdout) == dict.fromkeys(STEPS, "done")
    # The flood of the SDK is in the log and nowhere else.
    assert result.stderr == "" and len(result.stdout.splitlines()) < 30
    assert "KFP Executor" in (smoke.path / "root/pipeline.log").read_text()
    assert "[2/2]" in result.stdout
    version = smoke.path / "out" / NAME / "1"
    evidence = version / "assets.extra" / "evaluation.json"
    verdict = json.loads(evidence.read_text())
    assert verdict["blessed"] and len(verdict["checks"]) == 3
    assert all(check["count"] == 2 for check in verdict["checks"])
    assert (version / "saved_model.pb").exists()
    assert (smoke.work / "report" / "report.html").exists()
    anomalies = smoke.path.glob("root/kfp/*/example-validator/anomalies")
    assert json.loads(next(anomalies).read_text())["anomalies"] == []


def test_the_same_command_prints_the_result(smoke: Place) -> None:
    before = smoke.list_states()
    code = (
        "import sys\n"
        "from pipelines.run_local import main\n"
        "assert main(['', *sys.argv[1:]]) == 0\n"
        "print({'kfp', 'tensorflow', 'pandas'} & set(sys.modules))\n"
    )
    flags = smoke.make_command("--profile=smoke")[3:]
    again = subprocess.run(
        [sys.executable, "-c", code, *flags], capture_output=True, text=True
    )
    lines = again.stdout.splitlines()
    assert lines.pop() == "set()", again.stderr
    assert read_states(again.stdout) == dict.fromkeys(STEPS, "done")
    assert set(lines) <= set(smoke.first.stdout.splitlines())
    assert smoke.list_states() == before
    # A model that has gone is not said to be there.
    out = smoke.path / "out"
    out.rename(smoke.path / "elsewhere")
    changed = smoke.run("--profile=smoke")
    (smoke.path / "elsewhere").rename(out)
    assert changed.returncode == 2 and "add --resume" in changed.stderr


def test_resume_repeats_nothing(smoke: Place, resume: Resume) -> None:
    before = smoke.list_states()
    printed, states = resume()
    assert states["example_validator"] == states["report"] == "kept"
    assert "nothing new, the model is" in printed
    assert "trials to run" not in printed
    assert smoke.list_states() == before


def test_compiled_pipeline_runs_here(
    smoke: Place,
    steps_here: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    path = tmp_path / "pipeline.yaml"
    compile_pipeline(load_profile("smoke").to_json(), path)
    local.init(local.SubprocessRunner(use_venv=False), str(tmp_path / "kfp"))
    pipeline = components.load_component_from_file(str(path))
    pipeline(work_dir=str(smoke.work), export_dir=str(smoke.path / "out"))
    assert "nothing new, the model is" in capsys.readouterr().out
    assert smoke.list_versions() == [".lock", "1"]


# Planted failures: stopped at the right step, nothing pushed


def test_bad_model_is_stopped(resume: Resume, tmp_path: Path) -> None:
    profile = tmp_path / "smoke"
    shutil.copytree(SHIPPED / "smoke", profile)
    text = (profile / "profile.toml").read_text()
    stricter = text.replace("{below = 0.1}", "{below = 1e-9}")
    (profile / "profile.toml").write_text(stricter)
    line, states = resume(profile, status=1)
    assert line.startswith("evaluator: not blessed: id_relative_mse ")
    assert "must be below 1e-09; nothing was pushed" in line
    assert states["evaluator"] == "stopped" and states["report"] == "done"
    assert states["infra_validator"] == states["pusher"] == "skipped"


def test_leak_is_stopped(
    smoke: Place,
    resume: Resume,
    leaking_data: Callable[[], AbstractContextManager],
) -> None:
    (config,) = list_datasets(load_profile("smoke"))
    leaky = materialize(config, smoke.work / "examples")  # was there before
    shutil.rmtree(leaky)
    with leaking_data():
        materialize(config, smoke.work / "examples")
    line, states = resume(status=1)
    shutil.rmtree(leaky)
    assert line.startswith(
        "example_validator: leak: 1 training examples lie in the "
        "region corner:7, the first at [7.0, 7.0] "
    )
    ran = {"example_gen", "schema_gen", "example_validator"}
    skipped = set(STEPS) - ran
    assert {s for s in states if states[s] == "skipped"} == skipped


def test_removed_data_and_a_broken_saved_model(
    smoke: Place, resume: Resume
) -> None:
    """Data is written again, trials stay, and the damage is found."""
    evaluation = json.loads((smoke.work / "evaluation.json").read_text())
    models = smoke.work / "runs" / "saved_models" / "smoke_low_rank"
    name = evaluation["candidate"]["name"]
    (data,) = (models / name).glob("*/variables/*.data*")
    whole, before = data.read_bytes(), smoke.list_states()
    data.write_bytes(whole[: len(whole) // 2])
    # It was found good before, and may be damaged since.
    try:
        line, states = resume(status=1)
    finally:
        data.write_bytes(whole)
    assert states["example_validator"] == "done"
    assert smoke.list_states() == before
    assert line.startswith("infra_validator: the SavedModel cannot be ")
    assert states["evaluator"] == "done"
    assert states["infra_validator"] == "failed"
    assert states["pusher"] == "skipped" and states["report"] == "kept"


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
    profile = write_profile("--seeds=4", "--steps_per_epoch=4000")
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
        time.sleep(2)  # another trial is under way
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
