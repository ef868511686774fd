"""Metrics: declarations, and those that users register."""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tfcomp import metrics
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.metric import list_declared, list_registered
from tfcomp.metrics.registry import (
    adopt_metrics,
    describe_user_metrics,
    find_limits,
    find_metric,
    list_charts,
    list_metrics,
    register_metric,
    unregister_all,
)
from tfcomp.metrics.run_metrics import compute_metrics, tabulate_stages
from tfcomp.statistics.limits import POSITIVE, REAL, SHARE, Limits


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("factorization", Limits(0.5, 1.0)),
        ("sharing_far_r2", Limits(high=1.0)),
        ("loss", REAL),
        # Of a part of a run; a name may be the end of another.
        ("id_test_relative_mse", POSITIVE),
        ("ood_composition_hit_rate", SHARE),
        ("layers/stage_0/cosine_factorization", SHARE),
    ],
)
def test_ranges_by_name(name: str, limits: Limits) -> None:
    assert find_limits(name) == limits


def test_every_declaration_is_whole() -> None:
    metrics = list_metrics()
    for one in metrics:
        assert one.label and one.function
        assert one.about or not (one.chart or one.of == "image")
        assert one.of in ("image", "stage", "stages", "run")
        assert one.limits.low < one.limits.high
        assert one.chart is None or one.of in ("stage", "stages")
    assert len({m.label for m in metrics}) == len({m.name for m in metrics})
    for shown in list_charts().values():
        assert len(shown) <= 4  # panels of a figure


def test_a_metric_of_ones_own() -> None:
    @register_metric("sparsity", label="Sparsity", range=(0, 1), unit="%")
    def measure_sparsity(stage) -> float:
        """Share of units
        that are zero.

        More on it."""
        return float((stage.activations == 0).mean())

    found = find_metric("layers/stage_0/sparsity")
    assert found.about == "Share of units that are zero."
    assert (found.of, found.is_user) == ("stage", True)
    assert found.chart.axis == "Sparsity (%)"
    assert found in list_charts("layers")[found.chart]
    assert [m.name for m in list_metrics() if m.is_user] == ["sparsity"]


def test_runs_record_what_users_declare() -> None:
    """Other commands know its range without the code that computes it."""

    def compute(stage) -> float:
        return 1.0

    register = register_metric("gain", range=(0, math.inf), better="high")
    register(compute)
    recorded = describe_user_metrics()
    unregister_all()
    assert find_limits("layers/image/gain") == REAL
    adopt_metrics(recorded | {"mse": {}, "broken": {"per": 3}, "other": 3})
    assert find_limits("layers/image/gain") == POSITIVE
    assert find_metric("broken") is find_metric("other") is None
    assert find_limits("mse") == POSITIVE
    # Nothing computes it here; the plugin may still be imported.
    assert find_metric("gain").function is None
    assert not list_registered("stage")
    register(compute)
    adopt_metrics(recorded)
    assert find_metric("gain").function is compute


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("log_volume_sd", {}, "registered already"),
        ("Upper", {}, "small letters"),
        ("stages", {}, "another entry"),
        ("new", {"per": "run"}, "per must be stage or image"),
        ("new", {"better": "big"}, "better must be"),
        ("new", {"range": (0, math.nan)}, "low < high"),
        ("new", {"range": ("a", "b")}, "low < high"),
    ],
)
def test_mistakes_of_registration(name, settings: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        register_metric(name, **settings)(lambda stage: 0.0)
    assert "\n" not in str(caught.value) and find_metric("new") is None


SMOKE = parse_config(["--flagfile=smoke.flags", "--width=4"])


@pytest.fixture(scope="module")
def dataset():
    return make_dataset(SMOKE)


def test_a_number_of_every_stage(make_study: Callable) -> None:
    seen = {}

    @tfcomp.register_metric("largest")
    def find_largest(stage) -> float | None:
        seen[stage.name] = stage
        return None if stage.name == "image" else stage.activations.max()

    study = make_study("truth", stage_0=lambda f: 2.0 * f)
    found = study.layers.summary
    assert found["stage_0"]["largest"] == 30.0
    assert found["image"]["largest"] is None
    assert {"factorization", "largest"} <= set(found["stage_0"])
    view = seen["stage_0"]
    np.testing.assert_array_equal(view.factors, study.splits.grid)
    np.testing.assert_array_equal(view.is_ood, study.splits.is_ood)
    np.testing.assert_allclose(view.activations, 2.0 * study.splits.grid)
    assert tabulate_stages(study, ["largest"])["stage_0"] == {"largest": 30.0}
    assert compute_metrics(study)["stages"] == study.stages


def test_a_number_of_every_image(dataset) -> None:
    @tfcomp.register_metric("mean_value", per="image")
    def average(data) -> np.ndarray:
        assert data.images.shape == data.truth.shape
        assert len(data.factors) == len(data.is_ood) == len(data.images)
        return data.images.mean(axis=(1, 2, 3)) + 10 * data.is_ood

    result = tfcomp.evaluate(dataset.render_array, dataset)
    images = dataset.render_array(dataset.splits.grid)
    splits = dataset.splits
    for subset, rows in (("id", splits.is_id), ("ood", splits.is_ood)):
        expected = np.mean([image.mean() for image in images[rows]])
        found = result.scores[subset]["mean_value"] - 10 * (subset == "ood")
        assert found == pytest.approx(expected, rel=1e-5)


def fail(_) -> float:
    raise KeyError("nothing")


MISTAKES = [
    ("stage", fail, "KeyError: 'nothing'"),
    ("stage", lambda stage: "high", "must return numbers, got str"),
    ("stage", lambda stage: [1.0, 2.0], "must return one number"),
    ("image", lambda data: 1.0, "must return a number for each of"),
]


@pytest.mark.parametrize(("per", "function", "words"), MISTAKES)
def test_a_mistake_is_one_line_before_the_training_and_after(
    per: str,
    function: Callable,
    words: str,
    dataset,
    working_folder: Path,
    make_study,
    capsys,
) -> None:
    """A late one, on real activations alone, costs only the number."""
    tfcomp.register_metric("mine", per=per)(function)
    for run in (
        lambda: tfcomp.train_run(SMOKE),
        lambda: tfcomp.evaluate(dataset.render_array, dataset),
    ):
        with pytest.raises(RunError, match="the metric 'mine': ") as caught:
            run()
        assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not list(working_folder.iterdir())
    study = make_study("truth")
    found, other = study.evaluation.scores["ood"], "mse"
    if per == "stage":
        found, other = study.layers.summary["image"], "cosine_factorization"
    assert found["mine"] is None and found[other] is not None
    lines = capsys.readouterr().err.splitlines()
    notes = [line for line in lines if "the metric 'mine'" in line]
    assert notes and all(words in line for line in notes)


def test_numbers_outside_of_the_range_are_noted(make_study, capsys) -> None:
    value = np.nan
    tfcomp.register_metric("mine", range=(0, 1))(lambda stage: value)
    found = make_study("truth").layers.summary
    assert {row["mine"] for row in found.values()} == {None}
    assert "is not finite" in capsys.readouterr().err
    value = 1.5
    found = make_study("truth").layers.summary
    assert {row["mine"] for row in found.values()} == {1.5}
    assert "leaves its range [0, 1]" in capsys.readouterr().err


def test_the_old_name_of_the_decorator() -> None:
    tfcomp.register_measure("mine")(lambda stage: 0.0)
    assert "mine" in describe_user_metrics()


def test_every_declaration_is_found() -> None:
    declared = set()
    for info in pkgutil.iter_modules(metrics.__path__):
        module = importlib.import_module(f"{metrics.__name__}.{info.name}")
        for _, function in inspect.getmembers(module, inspect.isfunction):
            declared.update(m.name for m in list_declared(function))
    assert declared == {metric.name for metric in list_metrics()}
