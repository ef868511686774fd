"""Measures of users: on stages, on images, and when they misbehave."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.run_metrics import compute_metrics, tabulate_stages

SMOKE = parse_config(["--flagfile=smoke.flags", "--width=4"])


@pytest.fixture(scope="module")
def dataset():
    return make_dataset(SMOKE)


def test_a_number_of_every_stage(make_study: Callable) -> None:
    seen = {}

    @tfcomp.register_measure("largest")
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
    """Its means over ID and over OOD are those of the loop."""

    @tfcomp.register_measure("mean_value", per="image")
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
def test_a_mistake_is_one_line_before_the_training(
    per: str, function: Callable, words: str, dataset, working_folder: Path
) -> None:
    tfcomp.register_measure("mine", per=per)(function)
    for run in (
        lambda: tfcomp.train_run(SMOKE),
        lambda: tfcomp.evaluate(dataset.render_array, dataset),
    ):
        with pytest.raises(RunError, match="the measure 'mine': ") as caught:
            run()
        assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not list(working_folder.iterdir())


@pytest.mark.parametrize(("per", "function", "words"), MISTAKES)
def test_a_late_mistake_costs_only_the_number(
    per: str, function: Callable, words: str, make_study, capsys
) -> None:
    """As one that shows on real activations alone."""
    tfcomp.register_measure("mine", per=per)(function)
    study = make_study("truth")
    found, other = study.evaluation.scores["ood"], "mse"
    if per == "stage":
        found, other = study.layers.summary["image"], "cosine_factorization"
    assert found["mine"] is None and found[other] is not None
    lines = capsys.readouterr().err.splitlines()
    notes = [line for line in lines if "the measure 'mine'" in line]
    assert notes and all(words in line for line in notes)


def test_numbers_outside_of_the_range_are_noted(make_study, capsys) -> None:
    value = np.nan
    tfcomp.register_measure("mine", range=(0, 1))(lambda stage: value)
    found = make_study("truth").layers.summary
    assert {row["mine"] for row in found.values()} == {None}
    assert "is not finite" in capsys.readouterr().err
    value = 1.5
    found = make_study("truth").layers.summary
    assert {row["mine"] for row in found.values()} == {1.5}
    assert "leaves its range [0, 1]" in capsys.readouterr().err
