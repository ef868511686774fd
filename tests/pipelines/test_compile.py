"""The commands of the pipelines, and the compiled one: complete, portable."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kfp import components

from pipelines.compile import main
from pipelines.run_local import STEPS
from pipelines.run_local import main as run_local
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import lock_folder


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    flags = ["--profile=quick", "--base_image=registry.example/python:9"]
    assert main(["", f"--output={path}", *flags]) == 0
    return path


def test_it_loads_back(compiled: Path):
    text = compiled.read_text()
    assert str(Path(__file__).parents[2]) not in text
    assert str(Path.home()) not in text
    pipeline = components.load_component_from_file(str(compiled))
    assert pipeline.name == "tfcomp"
    inputs = {"profile", "export_dir", "work_dir", "workers", "scheduler"}
    assert set(pipeline.component_spec.inputs) == inputs


@pytest.fixture
def spec(compiled: Path) -> dict[str, Any]:
    """The first document of the file: the pipeline itself."""
    first, *_ = yaml.safe_load_all(compiled.read_text())
    return first


def test_every_step_has_the_image(spec: dict[str, Any]):
    executors = spec["deploymentSpec"]["executors"]
    assert set(executors) == {f"exec-{s.replace('_', '-')}" for s in STEPS}
    for executor in executors.values():
        container = executor["container"]
        command = " ".join(container["command"])
        assert container["image"] == "registry.example/python:9"
        assert "pip install" not in command


def test_steps_are_in_order(spec: dict[str, Any]):
    tasks = spec["root"]["dag"]["tasks"]
    assert "example-validator" in tasks["trainer"]["dependentTasks"]
    (gate,) = (task for task in tasks.values() if "triggerPolicy" in task)
    assert set(gate["dependentTasks"]) == {"evaluator", "trainer"}

    behind_gate = spec["components"][gate["componentRef"]["name"]]
    inner = behind_gate["dag"]["tasks"]
    assert set(inner) == {"infra-validator", "pusher"}
    assert inner["pusher"]["dependentTasks"] == ["infra-validator"]


def test_mistakes(tmp_path: Path):
    with pytest.raises(ConfigError, match="--output"):
        main(["", "--output=pipeline.json"])
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--output"):
        main(["", f"--output={tmp_path / 'file' / 'p.yaml'}"])


@pytest.mark.parametrize(
    "flag",
    ["--profile=nix", "--export_dir=", "--scheduler=nowhere", "--profil=smoke"],
)
def test_bad_flags(flag: str, working_folder: Path):
    with pytest.raises((ConfigError, RunError)) as caught:
        run_local(["", flag])
    assert str(caught.value).startswith(flag.partition("=")[0])
    assert getattr(caught.value, "status", 2) == 2
    assert not list(working_folder.iterdir())


def test_folder_in_use(tmp_path: Path):
    with lock_folder(tmp_path):
        with pytest.raises(RunError, match="another process"):
            run_local(["", f"--pipeline_root={tmp_path}"])
