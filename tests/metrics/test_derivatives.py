"""Derivatives and interactions of the stages of planted models."""

import copy

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose
from pytest import approx

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.metrics import interaction, jacobians, tuning
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.stages import make_model
from tfcomp.report.stage_section import make_interactions, make_layers

pytestmark = pytest.mark.usefixtures("untraced")

STEPS = {
    "rounded": lambda f: 2 * tf.round(f),
    "stopped": lambda f: 2 * tf.stop_gradient(f),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_are_differenced_and_marked(step, make_study, capsys) -> None:
    """Exact derivatives are 0, which would be the worst factorization."""
    study = make_study(
        "truth",
        code=tf.sin,
        stage_1=STEPS[step],
        stage_2=lambda f: 0 * f,  # dead
    )
    metrics = study.metrics
    assert_allclose(metrics["stage_1"], [4 * np.eye(2)] * 256)
    # The others are exact.
    slopes = np.cos(study.splits.grid[:, 0])
    assert_allclose(metrics["code"][:, 0, 0], slopes**2, atol=1e-5)
    assert study.layers.summary["stage_1"]["factorization"] == 1
    assert "stage_1" in study.nondifferentiable
    assert not {"code", "stage_2"} & {*study.nondifferentiable}
    assert "stage_1" in capsys.readouterr().err

    points = tf.constant(study.splits.grid[:3])
    for steps, expected in ((None, 2 * np.eye(2)), ([], np.zeros((2, 2)))):
        jacobian_fn = jacobians.choose_jacobian(
            study.model,
            study.dataset,
            steps,
        )
        jacobians_by_stage = jacobian_fn(
            lambda f: {"stage_1": STEPS[step](f)}, points
        )
        assert_allclose(jacobians_by_stage["stage_1"], [expected] * 3)


def test_units_that_are_off_at_few_points_are_not_differenced() -> None:
    flags = "--model=mlp --width=2 --depth=2 --seed=34 --grid_size=16"
    config = parse_config([*flags.split(), "--region=square:5-9"])
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")

    assert not jacobians.find_nondifferentiable(model, dataset)


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

    assert not section.exhibits
    assert "no order" in section.introduction


def test_many_ordered_factors_have_scores_and_no_geometry(rng) -> None:
    """Before, a pass through the model for each of 40 factors took minutes."""
    classes = np.unique(rng.integers(0, 2, (60, 40)), axis=0)
    table = FactorTable(rng.random((60, 4, 4)), classes)
    weights = rng.normal(size=(40, 16)).astype(np.float32)

    def call(factors: tf.Tensor) -> tf.Tensor:
        image = tf.cast(factors, tf.float32) @ weights
        return tf.reshape(image, (-1, 4, 4))

    report = tfcomp.evaluate(call, table, "factor_0:1,factor_1:1")

    analysis = report.analysis
    assert analysis.metrics["image"].shape == (60, 0, 0)
    assert analysis.layers.summary["image"]["factorization"] is None
    assert np.isfinite(report.scores["ood"]["mse"])


@tf.custom_gradient
def once(f: tf.Tensor) -> tuple:
    """Sine, with a derivative that has none."""
    slope = tf.raw_ops.PreventGradient(input=tf.cos(f), message="no more")
    return tf.sin(f), lambda upstream: upstream * slope


@pytest.fixture(scope="module")
def study(make_study) -> RunAnalysis:
    return make_study(
        "truth",
        "--grid_size=8",
        "--region=square:3-4",
        code=tf.sin,  # adds up
        stage_0=lambda f: f[:, :1] * f[:, 1:],
        stage_1=tf.round,  # no derivatives
        stage_2=lambda f: 4.0 * tf.reverse(tf.sin(f), [1]) + 1.0,  # the code
    )


def test_interactions_of_known_stages(study) -> None:
    rows = tuning.measure_interaction(study)

    assert rows["code"]["mixed_share"] == 0
    assert rows["code"]["relative_contrast"] == 0
    assert rows["stage_0"]["mixed_share"] > 0.5  # the rest are its slopes
    assert rows["stage_1"]["mixed_share"] is None
    assert rows["image"]["mixed_share"] is None


def test_the_report_of_known_stages(study) -> None:
    other = copy.copy(study)
    other.name = "other"

    lines, curvature = make_interactions([study, other]).exhibits

    assert len(lines.rows) == len(curvature.rows) == 2 * len(study.stages)
    shares = {row["stage"]: row["interaction_share"] for row in lines.rows}
    assert shares["code"] == approx(0, abs=1e-6)
    assert shares["stage_0"] > 0.1


@pytest.mark.usefixtures("traced")
def test_tracing_and_batches_change_nothing(study) -> None:
    points = interaction.choose_points(study.splits.grid, 20)
    results = []
    for num_units in (1, interaction.MAX_NUMBERS // 50):
        measure = interaction.make_interaction_fn(
            study.model,
            study.dataset.space,
            num_units,
        )
        results.append(measure(points))
    for stage in ("code", "stage_2"):
        same = approx(results[0][stage], rel=1e-4, abs=1e-6)
        assert results[1][stage] == same


def test_stages_without_second_derivatives(make_study, make_turned) -> None:
    for make in (make_study, make_turned):
        study = make("truth", stage_0=once)
        assert tuning.measure_interaction(study) == {}
        assert study.metrics["stage_0"].any()
