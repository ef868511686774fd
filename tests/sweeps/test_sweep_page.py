"""Statistics and page of a sweep, on planted trials; its HParams."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import EpsImagePlugin, Image
from PIL.PngImagePlugin import PngInfo
from tensorboard.backend.event_processing import (
    data_provider,
    plugin_event_multiplexer,
)
from tensorboard.context import RequestContext
from tensorboard.plugins.hparams import api_pb2, get_experiment
from tensorboard.plugins.hparams.backend_context import Context

from tfcomp.config import run_flags
from tfcomp.figures.image_files import read_preview, write_preview
from tfcomp.report.score_table import ScoredRun, describe_fits
from tfcomp.statistics.limits import POSITIVE
from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps import sweep_page
from tfcomp.sweeps.grid import Trial

HISTORY = "epoch,train/loss,id/relative_mse\n1,4.0,0.5\n2,1.0,0.25\n"


def plant(folder: Path, depth: int, seed: int, **metrics: Any) -> Trial:
    """A trial, which is finished if it has metrics."""
    flags = [
        "--flagfile=smoke.flags",
        f"--depth={depth}",
        f"--seed={seed}",
        f"--log_dir={folder}/trials",
        f"--run_name={depth}_{seed}",
    ]
    config = run_flags.parse_config(flags)
    trial = Trial({"depth": depth}, config)
    if metrics:
        trial.path.mkdir(parents=True)
        lines = run_flags.list_flag_lines(config)
        (trial.path / "run.flags").write_text("\n".join(lines))
        (trial.path / "metrics.json").write_text(json.dumps(metrics))
        (trial.path / "history.csv").write_text(HISTORY)
    return trial


def make_metrics(id_error: float | None, ood_error: float | None) -> dict:
    return {
        "id": {"relative_mse": id_error},
        "ood": {"relative_mse": ood_error},
        "layers": {"image": {"probe_r2_ood": 0.5}},
    }


@pytest.fixture
def trials(tmp_path: Path) -> list[Trial]:
    """Depth 3 fits better, a seed of depth 4 is not finished."""
    errors = {2: [0.1, 0.3], 3: [0.2, 0.5], 4: [0.3]}
    trials = []
    for depth, values in errors.items():
        for seed, error in enumerate(values):
            metrics = make_metrics(0.01 * depth, error)
            trials.append(plant(tmp_path, depth, seed, **metrics))
    return [*trials, plant(tmp_path, 4, 1)]


def test_numbers(trials: list[Trial]) -> None:
    sweep = sweep_page.compute_numbers(trials, "first")
    assert sweep.flags == ["depth"]
    assert sweep.paths == ["id/relative_mse", "ood/relative_mse"]
    low, high = compute_interval([0.1, 0.3], POSITIVE)
    row = sweep.summary.set_index(["depth", "score"]).loc[2, "ood_relative_mse"]
    assert row["mean"] == pytest.approx(0.2)
    assert row[["low", "high", "n"]].tolist() == [low, high, 2]
    (other, _) = sweep.paired.query("score == 'ood_relative_mse'").to_dict(
        "records"
    )
    assert (other["depth_a"], other["depth_b"], other["n"]) == (2, 3, 2)
    assert other["difference"] == pytest.approx(0.15)
    assert len(sweep.runs) == 5
    losses = sweep.results.numbers.query("name == 'train/loss'")["value"]
    assert losses.tolist() == [4.0, 1.0] * 5


def test_a_score_that_a_seed_lacks_has_no_mean(tmp_path: Path) -> None:
    measures = {"schmidt": 0.5, "stages": ["image"]}
    measured = make_metrics(0.1, 0.1) | {"measures": measures}
    trials = [
        plant(tmp_path, 2, 0, **measured),
        plant(tmp_path, 2, 1, **make_metrics(0.3, None)),
    ]
    summary = sweep_page.compute_numbers(trials, "first").summary
    means = summary.set_index("score")[["mean", "n"]]
    assert means.loc["id_relative_mse"].tolist() == pytest.approx([0.2, 2])
    assert means.loc["ood_relative_mse"].tolist() == [None, 1]
    assert means.loc["schmidt"].tolist() == [None, 1]


def test_no_trial_is_finished(tmp_path: Path) -> None:
    sweep = sweep_page.compute_numbers([plant(tmp_path, 2, 0)], "first")
    assert sweep.summary.empty and sweep.paired.empty and not sweep.runs


def test_page(trials: list[Trial], tmp_path: Path) -> None:
    images = np.stack([np.eye(4), np.ones((4, 4))])  # [n, H, W]
    for trial in trials[:3]:
        write_preview(trial.path, ["OOD 1", "OOD 2"], [images, images / 2])
    sweep = sweep_page.compute_numbers(trials, "first")
    sweep_page.write_page(tmp_path, sweep)

    page = (tmp_path / "report.html").read_text("utf-8")
    assert "depth 3" in page and "5 of 6" in page
    assert 'href="figures/scores.pdf"' in page
    assert 'href="trials/2_0/"' in page
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"scores.pdf", "samples_0.png", "epoch_train_loss.png"} <= names
    assert "samples_1.png" not in names and "epoch_ood_mse.png" not in names
    curve = pd.read_csv(tmp_path / "figures" / "epoch_train_loss.csv")
    assert curve[curve["x"] == 2]["mean"].tolist() == [1.0, 1.0, 1.0]
    stages = pd.read_csv(tmp_path / "figures" / "stage_probe_r2_ood.csv")
    assert set(stages["line"]) == {"depth 2", "depth 3", "depth 4"}


def make_runs(*errors: tuple[str, float | None, float | None]) -> list:
    runs = []
    for seed, (name, known, held_out) in enumerate(errors):
        runs.append(ScoredRun(name, seed, {"id": known, "ood": held_out}))
    return runs


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([("a", 0.01, 0.5), ("b", 0.2, 0.4)], ["1 of 2", "0.5 (a)"]),
        ([("a", 0.01, 0.5), ("b", None, None)], ["1 of 2"]),
        ([("a", 0.01, 0.5), ("b", 0.01, 0.5)], ["2 of 2", "(a; b)"]),
        ([("a", 0.01, 0.5), ("b", 0.01, None)], ["that have one", "(a)"]),
        ([("a", 0.01, 0.5)], ["0.5"]),
        ([("a", 0.2, 0.5)], ["no test"]),
    ],
)
def test_settings_that_fit(errors: list, words: list[str]) -> None:
    """A setting that does not fit, or lacks a number, is not the best."""
    sentence = describe_fits(make_runs(*errors))
    for word in words:
        assert word in sentence


def test_a_preview_of_others_is_no_program(tmp_path: Path, monkeypatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(
        EpsImagePlugin, "Ghostscript", lambda *given: started.append(given)
    )
    text = '%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%points: ["a"]\n'
    (tmp_path / "preview.png").write_text(text)
    assert read_preview(tmp_path) is None and not started
    info = PngInfo()
    info.add_text("points", '["a"]')  # of two rows, which 5 pixels are not
    Image.new("L", (4, 5)).save(tmp_path / "preview.png", pnginfo=info)
    assert read_preview(tmp_path) is None


def test_hparams_of_a_sweep(tmp_path: Path) -> None:
    """As TensorBoard's own backend sees them."""
    config = run_flags.parse_config(["--flagfile=smoke.flags"])
    trials = []
    for depth in (2, 3):
        varied = {"depth": depth, "encoding": "bump", "resume": depth < 3}
        trials.append(Trial(varied, config))
    sweep_page.write_experiment(tmp_path, trials, ["id/mse", "ood/mse"])

    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(tmp_path))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, "logs")
    backend = Context(SimpleNamespace(data_provider=provider))
    request = api_pb2.GetExperimentRequest(include_metrics=True)
    handler = get_experiment.Handler(RequestContext(), backend, "", request)
    experiment = handler.run()

    infos = {info.name: info for info in experiment.hparam_infos}
    assert list(infos) == ["depth", "encoding", "resume", "seed"]
    depths = infos["depth"].domain_discrete.values
    assert [value.number_value for value in depths] == [2, 3]
    (code,) = infos["encoding"].domain_discrete.values
    assert code.string_value == "bump"
    # Booleans are numbers in Python, and must not be here.
    assert infos["resume"].type == api_pb2.DATA_TYPE_BOOL
    tags = [metric.name.tag for metric in experiment.metric_infos]
    assert tags == ["id/mse", "ood/mse"]
