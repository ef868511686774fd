"""Statistics and page of a sweep, on planted trials; its HParams."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from pytest import approx
from tensorboard.backend.event_processing import (
    data_provider,
    plugin_event_multiplexer,
)
from tensorboard.context import RequestContext
from tensorboard.plugins.hparams import api_pb2, get_experiment
from tensorboard.plugins.hparams.backend_context import Context

from tfcomp.config import run_flags
from tfcomp.report.score_table import ScoredRun, describe_fits
from tfcomp.statistics.limits import POSITIVE
from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps import sweep_page
from tfcomp.sweeps.grid import Trial

Plant = Callable[..., Trial]
HISTORY = "epoch,train/loss,id/relative_mse\n1,4.0,0.5\n2,1.0,0.25\n"


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Makes a trial, which is finished if it has errors (ID, OOD)."""

    def plant(depth: int, seed: int, *errors: float | None, **more) -> Trial:
        flags = [
            "--flagfile=smoke.flags",
            f"--depth={depth}",
            f"--seed={seed}",
            f"--log_dir={tmp_path}/trials",
            f"--run_name={depth}_{seed}",
        ]
        config = run_flags.parse_config(flags)
        trial = Trial({"depth": depth}, config)
        if errors:
            id_error, ood_error = errors
            metrics = {
                "id": {"relative_mse": id_error},
                "ood": {"relative_mse": ood_error},
                "layers": {"image": {"probe_r2_ood": 0.5}},
                **more,
            }
            trial.path.mkdir(parents=True)
            (trial.path / "run.flags").write_text("\n".join(flags))
            (trial.path / "metrics.json").write_text(json.dumps(metrics))
            (trial.path / "history.csv").write_text(HISTORY)
        return trial

    return plant


@pytest.fixture
def trials(plant: Plant) -> list[Trial]:
    """Depth 3 fits better, a seed of depth 4 is not finished."""
    return [
        plant(2, 0, 0.02, 0.1),
        plant(2, 1, 0.02, 0.3),
        plant(3, 0, 0.03, 0.2),
        plant(3, 1, 0.03, 0.5),
        plant(4, 0, 0.04, 0.3),
        plant(4, 1),
    ]


def test_numbers(trials: list[Trial]):
    sweep = sweep_page.compute_numbers(trials, "first")

    assert sweep.flags == ["depth"]
    assert sweep.paths == ["id/relative_mse", "ood/relative_mse"]
    assert len(sweep.runs) == 5

    summary = sweep.summary.set_index(["depth", "score"])
    row = summary.loc[2, "ood_relative_mse"]
    low, high = compute_interval([0.1, 0.3], POSITIVE)
    assert row["mean"] == approx(0.2)
    assert row["low"] == low
    assert row["high"] == high
    assert row["n"] == 2

    losses = sweep.results.numbers.query("name == 'train/loss'")
    assert losses["value"].tolist() == [4.0, 1.0] * 5


def test_a_score_that_a_seed_lacks_has_no_mean(plant: Plant):
    measures = {"schmidt": 0.5, "stages": ["image"]}
    trials = [
        plant(2, 0, 0.1, 0.1, measures=measures),
        plant(2, 1, 0.3, None),
    ]

    summary = sweep_page.compute_numbers(trials, "first").summary

    means = summary.set_index("score")[["mean", "n"]]
    assert means.loc["id_relative_mse"].tolist() == approx([0.2, 2])
    assert means.loc["ood_relative_mse"].tolist() == [None, 1]
    assert means.loc["schmidt"].tolist() == [None, 1]


def test_no_trial_is_finished(plant: Plant):
    sweep = sweep_page.compute_numbers([plant(2, 0)], "first")
    assert sweep.summary.empty
    assert sweep.paired.empty
    assert not sweep.runs


def test_page(
    trials: list[Trial],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    pdf = "tfcomp.figures.exhibits.figure_to_pdf"
    monkeypatch.setattr(pdf, lambda _: b"")  # slow
    sweep = sweep_page.compute_numbers(trials, "first")

    sweep_page.write_page(tmp_path, sweep)

    page = (tmp_path / "report.html").read_text("utf-8")
    for text in ("depth 3", "5 of 6", "figures/scores.pdf", "trials/2_0/"):
        assert text in page

    figures = tmp_path / "figures"
    for name in ("scores", "epoch_train_loss"):
        assert (figures / f"{name}.png").exists()
    assert not (figures / "epoch_ood_mse.png").exists()
    curve = pd.read_csv(figures / "epoch_train_loss.csv")
    last = curve[curve["x"] == 2]
    assert last["mean"].tolist() == [1.0, 1.0, 1.0]
    stages = pd.read_csv(figures / "stage_probe_r2_ood.csv")
    assert set(stages["line"]) == {"depth 2", "depth 3", "depth 4"}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((0.01, 0.5), (0.2, 0.4), ["1 of 2", "but not b", "0.5 (a)"]),
        ((0.01, 0.5), (None, None), ["1 of 2"]),
        ((0.01, 0.5), (0.01, None), ["that have one", "(a)"]),
        ((0.01, 0.9), (0.01, 0.8), ["all fail", "0.5): a, b."]),
        ((0.2, 0.5), None, ["no test"]),
    ],
)
def test_settings_that_fit(
    first: tuple,
    second: tuple | None,
    words: list[str],
):
    """A setting that does not fit, or lacks a number, is not the best."""
    runs = [make_scored("a", *first)]
    if second:
        runs.append(make_scored("b", *second))

    sentence = describe_fits(runs)

    for word in words:
        assert word in sentence


def make_scored(
    setting: str,
    id_error: float | None,
    ood_error: float | None,
) -> ScoredRun:
    scores = {"id": id_error, "ood": ood_error}
    return ScoredRun(setting, ord(setting), scores)


def read_experiment(folder: Path) -> api_pb2.Experiment:
    """Reads the HParams of a folder as TensorBoard's own backend does."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, "logs")
    backend = Context(SimpleNamespace(data_provider=provider))
    request = api_pb2.GetExperimentRequest(include_metrics=True)
    handler = get_experiment.Handler(RequestContext(), backend, "", request)
    return handler.run()


def test_hparams_of_a_sweep(tmp_path: Path):
    config = run_flags.parse_config(["--flagfile=smoke.flags"])
    trials = []
    for depth in (2, 3):
        varied = {"depth": depth, "encoding": "bump", "resume": depth < 3}
        trials.append(Trial(varied, config))
    sweep_page.write_experiment(tmp_path, trials, ["id/mse", "ood/mse"])

    experiment = read_experiment(tmp_path)

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
