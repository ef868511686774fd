"""Models that have no derivative, or no factor to take one by."""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import (
    DATASETS,
    Dataset,
    Factor,
    FactorSpace,
    make_splits,
    parse_region,
)
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.report.stage_section import make_layers
from tfcomp.training.experiment import train_and_evaluate

# Two names, and nothing that has an order.
NAMES = FactorSpace(
    (
        Factor("shape", 4, 0, 3, categorical=True),
        Factor("color", 5, 0, 4, categorical=True),
    )
)


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
    jacobian_fn = choose_jacobian(study.run.model, study.dataset.space)
    points = tf.constant(study.splits.grid[:3])
    found = jacobian_fn(lambda f: {"stage_1": STEPS[step](f)}, points)
    np.testing.assert_allclose(found["stage_1"], [2 * np.eye(2)] * 3)
    exact_fn = choose_jacobian(study.run.model, study.dataset.space, [])
    exact = exact_fn(lambda f: {"stage_1": STEPS[step](f)}, points)
    assert not np.any(exact["stage_1"])


def test_a_run_without_ordered_factors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def render(factors: tf.Tensor) -> tf.Tensor:
        which = tf.cast(factors, tf.int32)
        rows = tf.one_hot(which[:, 0], 12)[:, :, None, None]
        return rows * tf.one_hot(which[:, 1], 12)[:, None, :, None]

    def make(config) -> Dataset:
        region = parse_region(config.data.region, NAMES)
        grid = NAMES.grid()
        splits = make_splits(NAMES, region, grid[~region.contains(grid)])
        data = "names", NAMES, region, splits, render, (12, 12, 1)
        return Dataset(*data, has_position=False)

    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    DATASETS.register("names")(make)
    keras.utils.clear_session()
    flags = (
        "--flagfile=smoke.flags --dataset=names --encoding=one_hot --model=mlp "
        "--region=box:shape:1-2,color:1-2 --epochs=1 --steps_per_epoch=2 "
        f"--pictures=False --log_dir={tmp_path} --export_dir={tmp_path}/models"
    )
    config = parse_config(flags.split())
    metrics = train_and_evaluate(config)
    assert metrics["ood"]["mse"] > 0
    for numbers in metrics["layers"].values():
        assert set(numbers.values()) == {None}
    study = RunAnalysis(load_run(config.run_dir))
    section = make_layers([study])
    assert not section.exhibits and "no order" in section.introduction
