"""Derivatives, interactions and similarity of planted stages."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.metrics import interaction, jacobians, similarity, tuning
from tfcomp.metrics.jacobians import choose_jacobian
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.stages import make_model
from tfcomp.report.stage_section import make_interactions, make_layers

STEPS = {
    "rounded": lambda f: 2 * tf.round(f),
    "stopped": lambda f: 2 * tf.stop_gradient(f),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_are_differenced_and_marked(
    step: str, make_study: Callable, capsys: pytest.CaptureFixture
) -> None:
    """Exact derivatives are 0, which would be the worst factorization."""
    study = make_study(
        "truth", code=tf.sin, stage_1=STEPS[step], stage_2=lambda f: 0 * f
    )
    identity = 4 * np.eye(2)
    np.testing.assert_allclose(study.metrics["stage_1"], [identity] * 256)
    # The others are exact.
    expected = np.cos(study.splits.grid[:, 0]) ** 2
    np.testing.assert_allclose(
        study.metrics["code"][:, 0, 0], expected, atol=1e-5
    )
    assert study.layers.summary["stage_1"]["factorization"] == 1
    assert "stage_1" in study.nondifferentiable
    assert not {"code", "stage_2"} & {*study.nondifferentiable}  # 2 is dead
    assert "stage_1" in capsys.readouterr().err
    jacobian_fn = choose_jacobian(study.run.model, study.dataset)
    points = tf.constant(study.splits.grid[:3])
    found = jacobian_fn(lambda f: {"stage_1": STEPS[step](f)}, points)
    np.testing.assert_allclose(found["stage_1"], [2 * np.eye(2)] * 3)
    exact_fn = choose_jacobian(study.run.model, study.dataset, [])
    exact = exact_fn(lambda f: {"stage_1": STEPS[step](f)}, points)
    assert not np.any(exact["stage_1"])


def test_units_that_are_off_at_few_points_are_not_differenced() -> None:
    """The same geometry at all points and at given ones."""
    config = parse_config(
        [
            *("--model=mlp", "--width=2", "--depth=2", "--seed=34"),
            *("--grid_size=16", "--region=square:5-9"),
        ]
    )
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")
    analysis = RunAnalysis(model, dataset)
    expected, points = analysis.metrics, dataset.splits.grid
    assert not analysis.nondifferentiable
    assert not jacobians.find_nondifferentiable(model, dataset)
    result = tfcomp.evaluate(model, dataset, stages=["stage_1"])
    found = result.geometry("stage_1", points)
    np.testing.assert_allclose(found, expected["stage_1"], 1e-4, 1e-8)


def test_data_without_ordered_factors() -> None:
    classes = np.argwhere(np.ones((4, 5)))
    images = np.zeros((20, 5, 5), np.float32)
    images[np.arange(20), classes[:, 0], classes[:, 1]] = 1
    table = FactorTable(images, classes, kinds=["categorical"] * 2)
    region = "factor_0:1-2,factor_1:1-2"
    study = tfcomp.evaluate(table.draw, table, region).analysis
    for numbers in study.layers.summary.values():
        assert set(numbers.values()) == {None}
    section = make_layers([study])
    assert not section.exhibits and "no order" in section.introduction


@tf.custom_gradient
def once(f: tf.Tensor) -> tuple:
    """Sine, with a derivative that has none."""
    slope = tf.raw_ops.PreventGradient(input=tf.cos(f), message="no more")
    return tf.sin(f), lambda upstream: upstream * slope


KNOWN_STAGES = {
    "code": tf.sin,  # adds up
    "stage_0": lambda f: f[:, :1] * f[:, 1:],
    "stage_1": lambda f: tf.round(f),  # no derivatives
    "stage_2": lambda f: 4.0 * tf.reverse(tf.sin(f), [1]) + 1.0,  # code, turned
}


@pytest.fixture
def study(make_study: Callable) -> RunAnalysis:
    return make_study("truth", **KNOWN_STAGES)


def test_measures_and_report_of_known_stages(study: RunAnalysis) -> None:
    found = tuning.measure_interaction(study)
    alike = similarity.measure_similarity(study)
    numbers = {stage: found[stage] | alike[stage] for stage in found}
    added, product, rounded, image = (
        numbers[stage] for stage in ("code", "stage_0", "stage_1", "image")
    )
    assert added["mixed_share"] == added["relative_contrast"] == 0
    assert product["mixed_share"] > 0.5  # the rest are its slopes
    assert rounded["mixed_share"] is image["mixed_share"] is None
    for name, same in (("cka", 1), ("procrustes", 0), ("rsa", 1)):
        assert image[f"image_{name}"] == pytest.approx(same, abs=1e-6)
        assert added[f"image_{name}"] != pytest.approx(same, abs=0.1)

    other = copy.copy(study)
    other.name = "other"
    lines, curvature = make_interactions([study, other]).exhibits
    assert len(lines.rows) == len(curvature.rows) == 2 * len(study.stages)
    shares = {row["stage"]: row["interaction_share"] for row in lines.rows}
    assert shares["code"] == pytest.approx(0, abs=1e-6)
    assert shares["stage_0"] > 0.1


def test_tracing_and_batches_change_nothing(study: RunAnalysis) -> None:
    points = interaction.choose_points(study.splits.grid, 20)
    model, space = study.run.model, study.dataset.space
    expected, found = (
        interaction.make_interaction_fn(model, space, num_units)(points)
        for num_units in (1, interaction.MAX_NUMBERS // 50)
    )
    for stage in ("code", "stage_2"):
        same = pytest.approx(expected[stage], rel=1e-4, abs=1e-6)
        assert found[stage] == same


def test_stages_without_second_derivatives(make_study, make_turned) -> None:
    for make in (make_study, make_turned):
        study = make("truth", stage_0=once)
        assert tuning.measure_interaction(study) == {}
        assert study.metrics["stage_0"].any()


def test_many_ordered_factors_have_scores_and_no_geometry() -> None:
    """Before, a pass through the model for each of 40 factors took minutes."""
    rng = np.random.default_rng(0)
    classes = np.unique(rng.integers(0, 2, (60, 40)), axis=0)
    names = [f"a{number}" for number in range(40)]
    table = tfcomp.FactorTable(rng.random((60, 4, 4)), classes, names=names)
    weights = rng.normal(size=(40, 16)).astype(np.float32)

    result = tfcomp.evaluate(
        lambda f: tf.reshape(tf.cast(f, tf.float32) @ weights, (-1, 4, 4)),
        table,
        region="a0:1,a1:1",
    )

    assert result.analysis.metrics["image"].shape == (60, 0, 0)
    layer = result.analysis.layers.summary["image"]
    assert layer["factorization"] is None
    assert np.isfinite(result.scores["ood"]["mse"])
