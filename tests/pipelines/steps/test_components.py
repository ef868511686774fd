"""Each step, called as the function that its component wraps."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from kfp import dsl

from pipelines.profile import Profile
from pipelines.profile import load_profile
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


def pick(artifacts: Artifacts, *names: str) -> Artifacts:
    return {name: artifacts[name] for name in names}


def test_examples(tiny_profile: Profile, artifacts: Artifacts) -> None:
    text = tiny_profile.to_json()
    made = pick(artifacts, "examples")
    example_gen.python_func(profile=text, work_dir="", **made)
    assert made["examples"].metadata["datasets"] == 1
    before = made["examples"].metadata["digest"]
    (record,) = Path(made["examples"].path).rglob("*-train.tfrecord*")
    content = record.read_bytes()
    record.write_bytes(content + b"more")
    example_gen.python_func(profile=text, work_dir="", **made)
    assert made["examples"].metadata["digest"] != before
    record.write_bytes(content)
    checked = pick(artifacts, "examples", "anomalies", "metrics")
    example_validator.python_func(profile=text, **checked)
    assert checked["metrics"].metadata == {"datasets": 1, "anomalies": 0}
    content = json.loads(Path(checked["anomalies"].path).read_text())
    assert content["anomalies"] == [] and content["statistics"]


def test_planted_leak_is_stopped(
    tiny_profile: Profile,
    artifacts: Artifacts,
    leaking_data: Callable[[], AbstractContextManager],
    capfd: pytest.CaptureFixture,
) -> None:
    text = tiny_profile.to_json()
    with leaking_data():
        example_gen.python_func(
            profile=text, work_dir="", **pick(artifacts, "examples")
        )
    checked = pick(artifacts, "examples", "anomalies", "metrics")
    with pytest.raises(
        RunError, match="leak: 1 training examples lie in the region corner:5"
    ):
        example_validator.python_func(profile=text, **checked)
    # What was found is there although the step failed.
    content = json.loads(Path(checked["anomalies"].path).read_text())
    checks = [anomaly["check"] for anomaly in content["anomalies"]]
    assert checks == ["leak", "splits"]
    assert '"state": "failed"' in capfd.readouterr().out


def test_trainer_records_failed_trials(
    write_profile: Callable[..., Path], artifacts: Artifacts, tmp_path: Path
) -> None:
    # One learning rate is absurd and diverges.
    path = write_profile("--grid=learning_rate=1e-3,1e18")
    text = load_profile(str(path)).to_json()
    work = str(tmp_path / "work")
    example_gen.python_func(
        profile=text, work_dir=work, **pick(artifacts, "examples")
    )
    train = {"profile": text, "work_dir": work, "workers": 2, "scheduler": ""}
    outputs = pick(artifacts, "examples", "runs", "metrics")
    trainer.python_func(**train, **outputs)
    runs = Path(outputs["runs"].path)
    assert runs == tmp_path / "work" / "runs"
    assert outputs["metrics"].metadata == {"trials": 2, "failed": 1}
    assert len(outputs["runs"].metadata["digest"]) == 64
    (finished,) = runs.glob("logs/tiny/trials/*/metrics.json")
    flags = (finished.parent / "run.flags").read_text()
    assert f"--examples_dir={tmp_path / 'work' / 'examples'}" in flags
    judged = pick(artifacts, "runs", "evaluation", "metrics")
    assert evaluator.python_func(
        profile=text, work_dir="", export_dir=str(tmp_path / "out"), **judged
    )
    content = json.loads(Path(judged["evaluation"].path).read_text())
    assert content["candidate"]["name"] == finished.parent.name
    assert content["candidate"]["setting"] == {"learning_rate": "0.001"}


# From here on with a run that was not trained by the trainer.


@pytest.fixture
def trained(artifacts: Artifacts, runs_dir: Path) -> Artifacts:
    """The artifacts after the trainer."""
    artifacts["runs"].uri = str(runs_dir)
    return artifacts


def judge(text: str, trained: Artifacts, export_dir: Path) -> bool:
    return evaluator.python_func(
        profile=text,
        export_dir=str(export_dir),
        work_dir="",
        **pick(trained, "runs", "evaluation", "metrics"),
    )


def push(text: str, trained: Artifacts, export_dir: Path) -> None:
    pusher.python_func(
        profile=text,
        export_dir=str(export_dir),
        **pick(trained, "runs", "evaluation", "pushed"),
    )


def ask(trained: Artifacts) -> None:
    infra_validator.python_func(
        **pick(trained, "runs", "evaluation", "metrics")
    )


def test_good_model_is_pushed_once(
    tiny_profile: Profile, trained: Artifacts, tmp_path: Path
) -> None:
    text, out = tiny_profile.to_json(), tmp_path / "out"
    assert judge(text, trained, out)
    ask(trained)
    assert trained["metrics"].metadata["answers"] > 10
    for _ in range(2):
        push(text, trained, out)
        assert trained["pushed"].metadata == {"version": "1"}
    version = out / "tiny" / "1"
    assert trained["pushed"].uri == str(version)
    evidence = version / "assets.extra" / "evaluation.json"
    assert json.loads(evidence.read_text())["blessed"] is True


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
        ask(trained)


def test_report(
    tiny_profile: Profile, trained: Artifacts, tmp_path: Path
) -> None:
    report.python_func(
        profile=tiny_profile.to_json(),
        work_dir=str(tmp_path / "work"),
        **pick(trained, "runs", "folder", "page", "metrics"),
    )
    page = tmp_path / "work" / "report" / "report.html"
    assert page.read_text() == Path(trained["page"].path).read_text()
    assert sum(trained["metrics"].metadata.values()) == 20  # claims
