"""Derivatives and interactions of the stages of planted models."""

import copy

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose
from pytest import approx

import tfcomp
from tests.conftest import set_tracing
from tests.metrics.planted import make_grid, make_noise
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.metrics import interaction, jacobians, tuning
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.registry import make_model
from tfcomp.report.stage_section import make_interactions, make_layers

pytestmark = pytest.mark.usefixtures("untraced")


def step(f: tf.Tensor) -> tf.Tensor:
    return 2 * tf.round(f)


@pytest.fixture(scope="module")
def stepped(make_small) -> RunAnalysis:
    """A study with a stage that has no derivatives."""
    return make_small(
        "truth",
        code=tf.sin,
        stage_1=step,
        stage_2=lambda f: 0 * f,  # dead
    )


def test_steps_are_differenced_and_marked(stepped, capsys):
    """Exact derivatives are 0, which would be the worst factorization."""
    metrics = stepped.metrics

    x, _ = stepped.splits.grid.T
    marked = set(stepped.nondifferentiable)
    assert_allclose(metrics["stage_1"], [4 * np.eye(2)] * 64)
    # The others are exact.
    of_x = metrics["code"][:, 0, 0]
    assert_allclose(of_x, np.cos(x) ** 2, atol=1e-5)
    assert stepped.layers.summary["stage_1"]["factorization"] == 1
    assert "stage_1" in marked
    assert not {"code", "stage_2"} & marked
    assert "stage_1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "steps, slope",
    [
        (None, 2),
        ([], 0),
    ],
)
def test_a_choice_of_derivatives_overrules_the_marks(stepped, steps, slope):
    points = tf.constant(stepped.splits.grid[:3])
    compute = jacobians.choose_jacobian(stepped.model, stepped.dataset, steps)

    by_stage = compute(lambda f: {"stage_1": step(f)}, points)

    expected = slope * np.eye(2)
    assert_allclose(by_stage["stage_1"], [expected] * 3)


def test_units_that_are_off_at_few_points_are_not_differenced():
    flags = "--model=mlp --width=2 --depth=2 --seed=44 --grid_size=8"
    config = parse_config([*flags.split(), "--region=square:3-4"])
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")

    assert not jacobians.find_nondifferentiable(model, dataset)


def test_data_without_ordered_factors():
    classes = make_grid(4, 5).astype(int)
    images = np.eye(20).reshape(20, 4, 5)
    table = FactorTable(images, classes, kinds=["categorical"] * 2)
    region = "factor_0:1-2,factor_1:1-2"

    study = tfcomp.evaluate(table.draw, table, region).analysis
    section = make_layers([study])

    for numbers in study.layers.summary.values():
        assert set(numbers.values()) == {None}
    assert not section.exhibits
    assert "no order" in section.introduction


def test_many_ordered_factors_have_scores_and_no_geometry(rng):
    """Before, a pass through the model for each of 40 factors took minutes."""
    classes = rng.integers(0, 2, (60, 40))
    images = rng.random((60, 4, 4))
    table = FactorTable(images, classes)
    weights = np.float32(make_noise(40, 16))

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
    slope = tf.cos(f)
    slope = tf.raw_ops.PreventGradient(input=slope, message="no more")
    return tf.sin(f), lambda upstream: upstream * slope


def multiply(f: tf.Tensor) -> tf.Tensor:
    return f[:, :1] * f[:, 1:]


def change_code(f: tf.Tensor) -> tf.Tensor:
    """The code, with its units exchanged, scaled and shifted."""
    return 4.0 * tf.sin(f)[:, ::-1] + 1.0


@pytest.fixture(scope="module")
def study(make_small) -> RunAnalysis:
    return make_small(
        "truth",
        code=tf.sin,  # adds up
        stage_0=multiply,
        stage_1=tf.round,  # no derivatives
        stage_2=change_code,
    )


def test_interactions_of_known_stages(study):
    rows = tuning.measure_interaction(study)

    assert rows["code"]["mixed_share"] == 0
    assert rows["code"]["relative_contrast"] == 0
    assert rows["stage_0"]["mixed_share"] > 0.5  # the rest are its slopes
    assert rows["stage_1"]["mixed_share"] is None
    assert rows["image"]["mixed_share"] is None


@pytest.mark.usefixtures("no_layout")
def test_the_report_of_known_stages(study):
    other = copy.copy(study)
    other.name = "other"

    section = make_interactions([study, other])

    lines, curvature = section.exhibits
    num_rows = 2 * len(study.stages)
    assert len(lines.rows) == num_rows
    assert len(curvature.rows) == num_rows
    table = pd.DataFrame(lines.rows).set_index("stage")
    shares = table["interaction_share"]
    assert shares["code"].max() == approx(0, abs=1e-6)
    assert shares["stage_0"].min() > 0.1


def test_tracing_and_batches_change_nothing(study):
    points = interaction.choose_points(study.splits.grid, 20)
    space = study.dataset.space
    make_fn = interaction.make_interaction_fn
    few_units = make_fn(study.model, space, 1)
    all_units = make_fn(study.model, space, interaction.MAX_NUMBERS // 50)

    expected = few_units(points)
    with set_tracing(True):
        results = all_units(points)

    for stage in ("code", "stage_2"):
        same = approx(expected[stage], rel=1e-4, abs=1e-6)
        assert results[stage] == same


def test_stages_without_second_derivatives(make_small, make_turned):
    for make in (make_small, make_turned):
        study = make("truth", stage_0=once)
        assert tuning.measure_interaction(study) == {}
        assert study.metrics["stage_0"].any()
