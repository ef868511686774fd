"""Each step, called as the function that its component wraps."""

import dataclasses
import inspect
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from kfp import dsl

from pipelines import pipeline, query, steps
from pipelines.profile import Profile, make_works
from pipelines.steps import report_runs
from reproduction import claims
from tests.sweeps.pool_here import PoolHere
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset, materialized
from tfcomp.sweeps import sweep_run

pytestmark = pytest.mark.usefixtures("untraced")

Inputs = dict[str, Any]


@pytest.fixture
def inputs(tiny_profile: Profile, tmp_path: Path) -> Inputs:
    """Values of all parameters, and an artifact of each kind."""
    artifacts: Inputs = {
        name: dsl.Artifact(name=name, uri=str(tmp_path / "sdk" / name))
        for name in "examples anomalies runs evaluation pushed".split()
    }
    artifacts["metrics"] = dsl.Metrics(uri=str(tmp_path / "sdk" / "metrics"))
    (tmp_path / "sdk").mkdir()
    places = {"work_dir": "", "export_dir": str(tmp_path / "out")}
    means = {"workers": 2, "scheduler": ""}
    return artifacts | places | means | {"profile": tiny_profile.to_json()}


def call(component: Any, inputs: Inputs) -> Any:
    """Calls a step with the inputs that it takes."""
    function = component.python_func
    names = inspect.signature(function).parameters
    return function(**{name: inputs[name] for name in names})


def read(artifact: dsl.Artifact) -> dict[str, Any]:
    return json.loads(Path(artifact.path).read_text())


def make_leaky(config: RunConfig) -> Dataset:
    """A dataset whose training set has a held-out combination."""
    dataset = make_dataset(config)
    held_out = dataset.splits.grid[dataset.splits.is_ood][:1]
    train = np.concatenate([dataset.splits.train, held_out])
    splits = dataclasses.replace(dataset.splits, train=train)
    return dataclasses.replace(dataset, splits=splits)


def test_planted_leak_is_stopped(
    inputs: Inputs,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
):
    call(pipeline.example_gen, inputs)
    call(pipeline.example_validator, inputs)
    assert read(inputs["anomalies"])["anomalies"] == []

    shutil.rmtree(inputs["examples"].path)
    monkeypatch.setattr(materialized, "make_dataset", make_leaky)
    call(pipeline.example_gen, inputs)
    with pytest.raises(RunError, match="factors of train: shape"):
        call(pipeline.example_validator, inputs)

    # The file is written although the step failed.
    assert len(read(inputs["anomalies"])["anomalies"]) == 1
    assert "failed  example_validator" in capfd.readouterr().out


def test_trainer_records_failed_trials(
    make_profile: Callable[..., Profile],
    inputs: Inputs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
):
    pool = nullcontext(PoolHere())
    monkeypatch.setattr(sweep_run, "open_pool", lambda *_: pool)
    monkeypatch.setattr(sweep_run.Sweep, "write_reports", lambda sweep: None)
    profile = make_profile("--grid=sigma=1,2", "--steps_per_epoch=1")
    work = tmp_path / "work"
    inputs |= {"profile": profile.to_json(), "work_dir": str(work)}
    inputs["workers"] = 1

    call(pipeline.example_gen, inputs)
    # One of the two trials finds no images.
    _, config = steps.list_datasets(profile)
    name = materialized.name_examples(config)
    shutil.rmtree(work / "examples" / "gaussian_bumps" / name)
    call(pipeline.trainer, inputs)

    runs = inputs["runs"]
    assert runs.path == str(work / "runs")
    assert "trials: 2, failed: 1" in capfd.readouterr().out
    (finished,) = Path(runs.path).glob("logs/tiny/trials/*/metrics.json")
    flags = (finished.parent / "run.flags").read_text()
    assert f"--examples_dir={work / 'examples'}" in flags
    inputs["work_dir"] = ""
    assert call(pipeline.evaluator, inputs)
    run = read(inputs["evaluation"])["run"]
    assert Path(runs.path, run) == finished.parent
    assert "--sigma=1.0" in flags


# From here on with a run that was not trained by the trainer.


def query_here(model: Path, factors: np.ndarray) -> np.ndarray:
    """Calls a SavedModel in this process, which has TensorFlow."""
    return np.array(query.call(str(model), factors.tolist()))


def test_good_model_is_pushed_once(
    inputs: Inputs,
    runs_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(steps, "query_model", query_here)
    inputs["runs"].uri = str(runs_dir)

    assert call(pipeline.evaluator, inputs)
    call(pipeline.infra_validator, inputs)
    for _ in range(2):
        call(pipeline.pusher, inputs)
        assert inputs["pushed"].metadata == {"version": "1"}

    version = tmp_path / "out" / "tiny" / "1"
    assert inputs["pushed"].uri == str(version)
    evidence = version / "assets.extra" / "evaluation.json"
    content = json.loads(evidence.read_text())
    assert content["blessed"] is True
    (metrics,) = runs_dir.glob("logs/tiny/trials/*/metrics.json")
    scores = json.loads(metrics.read_text())
    assert content["scores"]["ood_mse"] == scores["ood"]["mse"]
    # The next evaluation compares with it, and finds the model as good.
    assert call(pipeline.evaluator, inputs)
    again = read(inputs["evaluation"])
    assert len(again["checks"]) == 2 * len(content["checks"])


def test_trials_of_other_flags_or_code_are_left_out(
    tiny_profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    read_evidence = Mock(return_value=claims.Evidence())
    monkeypatch.setattr(claims, "read_evidence", read_evidence)
    (trial,) = make_works(tiny_profile, tmp_path)[0].items
    for name in (trial.name, "0123456789abcdef"):
        trial.path.with_name(name).mkdir(parents=True)

    report_runs(tiny_profile, tmp_path, tmp_path / "report")

    read_evidence.assert_called_once_with([str(trial.path)], any_seed=True)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "C23" in page
