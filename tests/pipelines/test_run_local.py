"""The pipeline as a user runs it, from nothing to a pushed model.

The tests continue in one folder, in their order, with a profile of two tiny
networks. The first test starts a process; later ones run the command here. CI
runs the smoke profile of the README in place of them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kfp import components, local

from pipelines import compile, run_local
from pipelines.run_local import STEPS, PipelineError
from tests.pipelines.conftest import write_tiny_profile

# Whole pipelines take minutes where other work is under way.
pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

NAME = "tiny"  # the profile pushes its model under it
FLAGS = ("--seeds=2", "--model=mlp")
RULES = (
    "--candidate=tiny",
    f"--push_as={NAME}",
    "--max=id_relative_mse=1000",
    "--max=ood_relative_mse=1000",
)
Run = Callable[..., tuple[str, dict[str, str]]]


class Place:
    """The folder of a pipeline and of its models."""

    def __init__(self, path: Path):
        self.path = path
        self.work = path / "root" / "work"
        self.own = write_tiny_profile(path / "own", *FLAGS, rules=RULES)

    def make_flags(self) -> list[str]:
        return [
            f"--pipeline_root={self.path}/root",
            f"--export_dir={self.path}/out",
            f"--profile={self.own}",
        ]

    def list_versions(self) -> list[str]:
        return sorted(os.listdir(self.path / "out" / NAME))

    def list_times(self) -> dict[Path, int]:
        """When each file of the runs was changed."""
        files = (self.work / "runs" / "logs").rglob("*/trials/*/*")
        return {path: path.stat().st_mtime_ns for path in files}


def read_states(output: str) -> dict[str, str]:
    """The state of each step in the output of a run."""
    rows = [line.split() for line in output.splitlines()]
    return {r[1]: r[0] for r in rows if len(r) > 1 and r[1] in STEPS}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


@pytest.fixture
def again(place: Place, capsys: pytest.CaptureFixture) -> Run:
    """Runs the command again, which pushes nothing.

    It returns the output, or the line of the error; and the steps' states.
    """

    def run() -> tuple[str, dict[str, str]]:
        capsys.readouterr()
        line = ""
        try:
            assert run_local.main(["", *place.make_flags()]) == 0
        except PipelineError as error:
            line = str(error)
            assert error.status == 1
            assert "\n" not in line
        printed = capsys.readouterr().out
        assert place.list_versions() == [".lock", "1"]
        return line or printed, read_states(printed)

    return run


def test_from_nothing_to_a_pushed_model(place: Place):
    command = [sys.executable, "-m", "pipelines.run_local", "--workers=1"]
    result = subprocess.run(
        [*command, *place.make_flags()],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert read_states(result.stdout) == dict.fromkeys(STEPS, "done")
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) < 30
    assert "[2/2]" in result.stdout
    version = place.path / "out" / NAME / "1"
    evidence = version / "assets.extra" / "evaluation.json"
    verdict = json.loads(evidence.read_text())
    assert verdict["blessed"]
    assert len(verdict["checks"]) == 2
    assert (version / "saved_model.pb").exists()
    assert (place.work / "report" / "report.html").exists()
    anomalies = json.loads((place.work / "anomalies").read_text())
    assert anomalies == {"anomalies": []}


def test_compiled_pipeline_runs_here(
    place: Place,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
):
    path = tmp_path / "pipeline.yaml"
    flags = [f"--profile={place.own}", f"--output={path}"]
    assert compile.main(["", *flags]) == 0
    local.init(local.SubprocessRunner(use_venv=False), str(tmp_path / "kfp"))
    pipeline = components.load_component_from_file(str(path))
    before = place.list_times()
    pipeline(work_dir=str(place.work), export_dir=str(place.path / "out"))
    printed = capsys.readouterr().out
    assert "nothing new, the model is" in printed
    assert "trials to run" not in printed  # no work is repeated
    assert place.list_times() == before
    assert place.list_versions() == [".lock", "1"]


# Planted failures: stopped at the right step, nothing pushed


def test_bad_model_is_stopped(place: Place, again: Run):
    rules = place.own / "pipeline.flags"
    text = rules.read_text()
    rules.write_text(f"{text}\n--max=id_relative_mse=1e-9")

    line, states = again()

    rules.write_text(text)
    assert line.startswith("evaluator: not blessed: id_relative_mse ")
    assert states["evaluator"] == "stopped"
    assert states["report"] == "done"
    assert not {"infra_validator", "pusher"} & set(states)


def test_removed_data_and_a_broken_saved_model(
    place: Place,
    again: Run,
):
    """Data are written again, trials stay, and the damage is found."""
    evaluation = json.loads((place.work / "evaluation.json").read_text())
    models = place.work / "runs" / "saved_models" / "tiny"
    run = models / Path(evaluation["run"]).name
    (data,) = run.glob("*/variables/*.data*")
    before = place.list_times()
    content = data.read_bytes()
    data.write_bytes(content[: len(content) // 2])

    try:
        line, states = again()
    finally:
        data.write_bytes(content)

    assert place.list_times() == before
    assert line.startswith("infra_validator: ")
    assert "pusher" not in states
    expected = {
        "example_validator": "done",
        "evaluator": "done",
        "infra_validator": "failed",
        "report": "done",
    }
    assert states | expected == states
