"""The compiled pipeline: valid, complete, free of this machine."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kfp import components

from pipelines.compile import main
from pipelines.run_local import STEPS
from tfcomp.config.errors import ConfigError


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    flags = ["--profile=quick", "--base_image=registry.example/python:9"]
    assert main(["", f"--output={path}", *flags]) == 0
    return path


@pytest.fixture(scope="module")
def spec(compiled: Path) -> dict:
    return next(yaml.safe_load_all(compiled.read_text()))


def test_it_loads_back(compiled: Path) -> None:
    pipeline = components.load_component_from_file(str(compiled))
    assert pipeline.name == "tfcomp"
    inputs = {"profile", "export_dir", "work_dir", "workers", "scheduler"}
    assert set(pipeline.component_spec.inputs) == inputs


def test_every_step_has_the_image_and_installs_nothing(spec: dict) -> None:
    executors = spec["deploymentSpec"]["executors"]
    assert set(executors) == {f"exec-{s.replace('_', '-')}" for s in STEPS}
    for executor in executors.values():
        container = executor["container"]
        assert container["image"] == "registry.example/python:9"
        assert "pip install" not in " ".join(container["command"])


def test_nothing_of_this_machine(compiled: Path) -> None:
    text = compiled.read_text()
    assert str(Path(__file__).parents[2]) not in text
    assert str(Path.home()) not in text


def test_order_of_the_steps(spec: dict) -> None:
    tasks = spec["root"]["dag"]["tasks"]
    assert "example-validator" in tasks["trainer"]["dependentTasks"]
    (gate,) = (t for t in tasks.values() if "triggerPolicy" in t)
    assert set(gate["dependentTasks"]) == {
        "evaluator",
        "example-gen",
        "trainer",
    }
    inner = spec["components"][gate["componentRef"]["name"]]["dag"]["tasks"]
    assert set(inner) == {"infra-validator", "pusher"}
    assert inner["pusher"]["dependentTasks"] == ["infra-validator"]


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--output must end in .yaml"):
        main(["", "--output=pipeline.json"])
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--output must name a folder that"):
        main(["", f"--output={tmp_path / 'file' / 'p.yaml'}"])


def test_importing_the_pipeline_runs_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, pipelines.pipeline\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, cwd=tmp_path) == b""
    assert not list(tmp_path.iterdir())
