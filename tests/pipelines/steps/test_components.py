"""Each step, called as the function that its component wraps."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from pipelines.profile import Profile
from pipelines.steps.evaluator.component import evaluator
from pipelines.steps.example_gen.component import example_gen
from pipelines.steps.example_validator.component import example_validator
from pipelines.steps.infra_validator.component import infra_validator
from pipelines.steps.pusher.component import pusher
from pipelines.steps.report.component import report
from pipelines.steps.trainer.component import trainer
from tfcomp.config.errors import RunError

# What goes in by name of the step.
Artifacts = dict[str, dsl.Artifact]


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    """An artifact of each kind, below the folder of the SDK."""
    kinds = {
        "examples": dsl.Dataset,
        "anomalies": dsl.Artifact,
        "metrics": dsl.Metrics,
        "runs": dsl.Artifact,
        "evaluation": dsl.Artifact,
        "pushed": dsl.Model,
        "folder": dsl.Artifact,
        "page": dsl.HTML,
    }
    (tmp_path / "sdk").mkdir()
    return {
        name: kind(name=name, uri=str(tmp_path / "sdk" / name))
        for name, kind in kinds.items()
    }


def call(component: Any, artifacts: Artifacts, **inputs: object) -> Any:
    """Calls a step with those of the artifacts that it takes or makes."""
    function = component.python_func
    names = inspect.signature(function).parameters
    given = {name: artifacts[name] for name in names if name in artifacts}
    return function(**given, **inputs)


def test_examples(tiny_profile: Profile, artifacts: Artifacts) -> None:
    text, examples = tiny_profile.to_json(), artifacts["examples"]
    call(example_gen, artifacts, profile=text, work_dir="")
    assert examples.metadata["datasets"] == 1
    before = examples.metadata["digest"]
    (record,) = Path(examples.path).rglob("*-train.tfrecord*")
    content = record.read_bytes()
    record.write_bytes(content + b"more")
    call(example_gen, artifacts, profile=text, work_dir="")
    assert examples.metadata["digest"] != before
    record.write_bytes(content)
    call(example_validator, artifacts, profile=text)
    numbers = {"datasets": 1, "anomalies": 0}
    assert artifacts["metrics"].metadata == numbers
    content = json.loads(Path(artifacts["anomalies"].path).read_text())
    assert content["anomalies"] == [] and content["statistics"]


def test_planted_leak_is_stopped(
    tiny_profile: Profile,
    artifacts: Artifacts,
    leaking_data: Callable[[], AbstractContextManager],
    capfd: pytest.CaptureFixture,
) -> None:
    text = tiny_profile.to_json()
    with leaking_data():
        call(example_gen, artifacts, profile=text, work_dir="")
    reason = "leak: 1 training examples lie in the region corner:5"
    with pytest.raises(RunError, match=reason):
        call(example_validator, artifacts, profile=text)
    # What was found is there although the step failed.
    content = json.loads(Path(artifacts["anomalies"].path).read_text())
    checks = [anomaly["check"] for anomaly in content["anomalies"]]
    assert checks == ["leak", "splits"]
    assert '"state": "failed"' in capfd.readouterr().out


def test_trainer_records_failed_trials(
    make_profile: Callable[..., Profile], artifacts: Artifacts, tmp_path: Path
) -> None:
    # One learning rate is absurd and diverges.
    text = make_profile("--grid=learning_rate=1e-3,1e18").to_json()
    work = tmp_path / "work"
    places = {"profile": text, "work_dir": str(work)}
    call(example_gen, artifacts, **places)
    call(trainer, artifacts, **places, workers=2, scheduler="")
    runs = artifacts["runs"]
    assert runs.path == str(work / "runs")
    assert artifacts["metrics"].metadata == {"trials": 2, "failed": 1}
    assert len(runs.metadata["digest"]) == 64
    (finished,) = Path(runs.path).glob("logs/tiny/trials/*/metrics.json")
    flags = (finished.parent / "run.flags").read_text()
    assert f"--examples_dir={work / 'examples'}" in flags
    assert judge(text, artifacts, tmp_path / "out")
    content = json.loads(Path(artifacts["evaluation"].path).read_text())
    assert content["candidate"]["name"] == finished.parent.name
    assert content["candidate"]["setting"] == {"learning_rate": "0.001"}


def judge(text: str, artifacts: Artifacts, export_dir: Path) -> bool:
    places = {"export_dir": str(export_dir), "work_dir": ""}
    return call(evaluator, artifacts, profile=text, **places)


# From here on with a run that was not trained by the trainer.


@pytest.fixture
def trained(artifacts: Artifacts, runs_dir: Path) -> Artifacts:
    """The artifacts after the trainer."""
    artifacts["runs"].uri = str(runs_dir)
    return artifacts


def test_good_model_is_pushed_once(
    tiny_profile: Profile, trained: Artifacts, tmp_path: Path
) -> None:
    text, out = tiny_profile.to_json(), tmp_path / "out"
    assert judge(text, trained, out)
    call(infra_validator, trained)
    assert trained["metrics"].metadata["answers"] > 10
    for _ in range(2):
        call(pusher, trained, profile=text, export_dir=str(out))
        assert trained["pushed"].metadata == {"version": "1"}
    version = out / "tiny" / "1"
    assert trained["pushed"].uri == str(version)
    evidence = version / "assets.extra" / "evaluation.json"
    verdict = json.loads(evidence.read_text())
    assert verdict["blessed"] is True and verdict["pushed"] == ""
    assert verdict["candidate"]["name"] == "smoke"


def test_model_with_other_weights_is_refused(
    tiny_profile: Profile, trained: Artifacts, tmp_path: Path
) -> None:
    import keras

    text = tiny_profile.to_json()
    judge(text, trained, tmp_path / "out")
    runs = Path(trained["runs"].path)
    (path,) = runs.glob("logs/tiny/trials/*/model.keras")
    model = keras.models.load_model(path)
    weights = model.get_weights()
    model.set_weights([weights[0] + 1, *weights[1:]])
    model.save(path)
    with pytest.raises(RunError, match="differs from the network's"):
        call(infra_validator, trained)


def test_report(
    tiny_profile: Profile, trained: Artifacts, tmp_path: Path
) -> None:
    text, work = tiny_profile.to_json(), str(tmp_path / "work")
    call(report, trained, profile=text, work_dir=work)
    page = tmp_path / "work" / "report" / "report.html"
    assert page.read_text() == Path(trained["page"].path).read_text()
    assert sum(trained["metrics"].metadata.values()) == 20  # claims
