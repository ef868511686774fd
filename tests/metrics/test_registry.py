"""Metrics: declarations, and those that users register."""

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tfcomp
from tfcomp import metrics
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics import registry
from tfcomp.metrics.registry import (
    find_limits,
    find_metric,
    label_number,
    register_metric,
)
from tfcomp.metrics.run_analysis import compute_metrics, tabulate_stages
from tfcomp.statistics.limits import POSITIVE, REAL, SHARE, Limits

pytestmark = pytest.mark.usefixtures("untraced")


@pytest.mark.parametrize(
    "name, limits",
    [
        ("factorization", Limits(0.5, 1.0)),
        ("sharing_far_r2_centered", Limits(high=1.0)),
        ("loss", REAL),
        # Of a part of a run; a name may be the end of another.
        ("id_test_relative_mse", POSITIVE),
        ("ood_composition_hit_rate", SHARE),
        ("layers/stage_0/cosine_factorization", SHARE),
    ],
)
def test_ranges_by_name(name, limits):
    assert find_limits(name) == limits


def test_every_declaration_is_found_and_whole():
    declared = set()
    for info in pkgutil.iter_modules(metrics.__path__):
        module = importlib.import_module(f"{metrics.__name__}.{info.name}")
        for _, function in inspect.getmembers(module, inspect.isfunction):
            declared |= {m.name for m in registry.list_declared(function)}
    listed = registry.list_metrics()

    assert declared == {metric.name for metric in listed}
    assert len({metric.label for metric in listed}) == len(listed)

    for metric in listed:
        assert metric.label
        assert metric.function
        assert metric.about or not (metric.chart or metric.of == "image")
        assert metric.limits.low < metric.limits.high
        assert metric.chart is None or metric.of in ("stage", "stages")
    for panels in registry.list_charts().values():
        assert len(panels) <= 4


def test_a_metric_of_ones_own():
    @register_metric(
        "sparsity",
        label="Sparsity",
        range=(0, 1),
        unit="%",
    )
    def measure_sparsity(stage) -> float:
        """Share of units
        that are zero.

        More on it."""
        return float((stage.activations == 0).mean())

    metric = find_metric("layers/stage_0/sparsity")
    assert metric.about == "Share of units that are zero."
    assert metric.of == "stage"
    assert metric.chart.axis == "Sparsity (%)"
    assert metric in registry.list_charts("layers")[metric.chart]


def test_runs_record_what_users_declare():
    """Other commands know its range without the code that computes it."""

    def compute(stage) -> float:
        return 1.0

    register = register_metric(
        "gain",
        range=(0, math.inf),
        better="high",
    )
    register(compute)
    recorded = registry.describe_user_metrics()
    registry.unregister_all()
    assert find_limits("layers/image/gain") == REAL

    broken = {
        "mse": {},
        "broken": {"per": 3},
        "other": 3,
    }
    registry.adopt_metrics(recorded | broken)
    assert find_limits("layers/image/gain") == POSITIVE
    assert find_limits("mse") == POSITIVE
    assert find_metric("broken") is find_metric("other") is None
    # Nothing computes it here; the plugin may still be imported.
    assert not registry.list_registered("stage")
    register(compute)
    registry.adopt_metrics(recorded)
    assert find_metric("gain").function is compute


@pytest.mark.parametrize(
    "name, settings, word",
    [
        ("log_volume_sd", {}, "already"),
        ("Upper", {}, "small letters"),
        ("stages", {}, "another entry"),
        ("new", {"per": "run"}, "per"),
        ("new", {"better": "big"}, "better"),
        ("new", {"range": (0, math.nan)}, "range"),
        ("new", {"range": ("a", "b")}, "range"),
    ],
)
def test_mistakes_of_registration(name, settings, word):
    with pytest.raises(ValueError, match=word) as caught:
        register_metric(name, **settings)(lambda stage: 0.0)
    assert "\n" not in str(caught.value)
    assert find_metric("new") is None


SMOKE = parse_config(["--flagfile=smoke.flags", "--width=4"])


@pytest.fixture(scope="module")
def dataset():
    return make_dataset(SMOKE)


def test_a_number_of_every_stage(make_small):
    views = {}

    @tfcomp.register_metric("largest")
    def find_largest(stage) -> float | None:
        views[stage.name] = stage
        if stage.name == "image":
            return None
        return stage.activations.max()

    study = make_small("truth", stage_0=lambda f: 2.0 * f)
    assert study.layers.summary["stage_0"]["largest"] == 14.0
    assert study.layers.summary["image"]["largest"] is None
    view = views["stage_0"]
    assert_array_equal(view.factors, study.splits.grid)
    assert_array_equal(view.is_ood, study.splits.is_ood)
    assert_allclose(view.activations, 2.0 * study.splits.grid)
    assert tabulate_stages(study, ["largest"])["stage_0"] == {"largest": 14.0}
    assert compute_metrics(study)["stages"] == study.stages


def test_a_number_of_every_image(dataset):
    @tfcomp.register_metric("mean_value", per="image")
    def average(data) -> np.ndarray:
        assert data.images.shape == data.truth.shape
        assert len(data.factors) == len(data.is_ood) == len(data.images)
        return data.images.mean(axis=(1, 2, 3)) + 10 * data.is_ood

    result = tfcomp.evaluate(dataset.render_array, dataset)
    splits = dataset.splits
    images = dataset.render_array(splits.grid)
    id_mean = images[splits.is_id].mean()
    ood_mean = images[splits.is_ood].mean()
    scores = result.scores
    id_score = scores["id"]["mean_value"]
    ood_score = scores["ood"]["mean_value"]
    assert id_score == pytest.approx(id_mean, rel=1e-5)
    assert ood_score == pytest.approx(ood_mean + 10, rel=1e-5)


def fail(_) -> float:
    raise KeyError("nothing")


@pytest.mark.parametrize(
    "per, function, words",
    [
        ("stage", fail, "KeyError: 'nothing'"),
        ("stage", lambda stage: "high", "got str"),
        ("stage", lambda stage: [1.0, 2.0], "one number"),
        ("image", lambda data: 1.0, "for each of"),
    ],
)
def test_a_mistake_is_one_line_before_the_training_and_after(
    per, function, words, dataset, working_folder, make_small, capsys
):
    """A late one, on real activations alone, costs only the number."""
    tfcomp.register_metric("mine", per=per)(function)
    for run in (
        lambda: tfcomp.train_run(SMOKE),
        lambda: tfcomp.evaluate(dataset.render_array, dataset),
    ):
        with pytest.raises(RunError, match="mine") as caught:
            run()
        message = str(caught.value)
        assert words in message
        assert "\n" not in message
    assert not list(working_folder.iterdir())

    study = make_small("truth")
    numbers = study.evaluation.scores["ood"]
    if per == "stage":
        numbers = study.layers.summary["image"]
    assert numbers.pop("mine") is None
    assert set(numbers.values()) != {None}
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "value, kept, words",
    [
        (np.nan, None, "not finite"),
        (1.5, 1.5, "range [0, 1]"),
    ],
)
def test_numbers_outside_of_the_range_are_noted(
    value, kept, words, make_small, capsys
):
    tfcomp.register_metric("mine", range=(0, 1))(lambda stage: value)
    summary = make_small("truth").layers.summary

    assert {row["mine"] for row in summary.values()} == {kept}
    assert words in capsys.readouterr().err


def test_the_old_name_of_the_decorator():
    tfcomp.register_measure("mine")(lambda stage: 0.0)
    assert find_metric("mine")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("ood/relative_mse", "relative MSE, held out"),
        ("id/position_error", "position error (px), trained"),
        ("cosine_factorization", "factorization, cosine form"),
        ("ood/of_a_user", "ood/of_a_user"),
    ],
)
def test_labels_of_numbers_are_words(name, label):
    assert label_number(name) == label
