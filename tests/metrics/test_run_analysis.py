"""Scores of all points in blocks, and analyses at other points."""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics import output_analysis, scores
from tfcomp.metrics.run_analysis import RunAnalysis, compute_metrics
from tfcomp.models.loading import LoadedRun
from tfcomp.models.registry import evaluate_in_batches, make_model
from tfcomp.report.report_build import MAKERS

pytestmark = pytest.mark.usefixtures("untraced")

SIZES = (2, 4, 5)
NETWORK = (
    "--dataset=table",
    "--region=factor_1:2-3",
    "--model=mlp",
    "--width=8",
    "--encoding=ramp",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """A file with 36 of 40 combinations of a name, a value and an angle."""
    path = tmp_path_factory.mktemp("table") / "own.npz"
    images = np.random.default_rng(0).integers(0, 255, (36, 8, 6), np.uint8)
    np.savez(
        path,
        images=images,
        classes=np.argwhere(np.ones(SIZES))[4:],
        kinds=["categorical", "ordered", "periodic"],
    )
    return path


def load(table: Path, *flags: str) -> RunAnalysis:
    return make_untrained(table, *NETWORK, f"--data={table}", *flags)


def make_untrained(path: Path, *flags: str) -> RunAnalysis:
    config = parse_config(flags)
    dataset = make_dataset(config)
    keras.utils.set_random_seed(0)
    model = make_model(config, dataset, "float32")
    return RunAnalysis.of_run(
        LoadedRun(
            path,
            config,
            dataset,
            model,
            {},
            "",
        )
    )


def test_streamed_scores_are_those_of_all_points(table, monkeypatch):
    monkeypatch.setattr("tfcomp.datasets.splits.MAX_ANALYZED", 10)
    monkeypatch.setattr(scores, "BLOCK", 7)
    study = load(table, "--eval_points=0", "--num_train=9")
    evaluation = study.evaluation
    assert study.splits.is_streamed
    assert evaluation.images.shape == (10, 8, 6, 1)
    assert list(evaluation.scores) == ["id", "ood", "id_test"]

    dataset = study.dataset
    scored = study.splits.scored
    images = study.model.predict(scored.factors, verbose=0)
    truth = dataset.render_array(scored.factors)
    for name, rows in dataset.subsets.items():
        each = scores.score_images(
            images[rows],
            truth[rows],
            positions=None,
            polarity=dataset.polarity,
            reference=dataset.reference,
        )
        expected = scores.average_scores(each, offset=0.0)
        means = evaluation.scores[name]
        assert means["num_peaks"] is None
        for key in ("mse", "relative_mse"):
            assert means[key] == pytest.approx(expected[key], rel=1e-6)


def test_blocks_and_smaller_calls_change_no_bit(table, monkeypatch):
    """Calls have all points, and fewer once memory was exhausted."""
    study = load(table)
    expected = study.evaluation.scores
    sizes = []

    def call(fn: Callable, points: np.ndarray, size: int = 28) -> dict:
        sizes.append(size)
        if size > 28:
            raise tf.errors.ResourceExhaustedError(None, None, "memory")
        return evaluate_in_batches(fn, points, size)

    monkeypatch.setattr(scores, "BLOCK", 5)
    monkeypatch.setattr(output_analysis, "evaluate_in_batches", call)
    first = RunAnalysis(study.model, study.dataset)
    second = RunAnalysis(first.traced, study.dataset)
    assert first.evaluation.scores == expected
    assert second.evaluation.scores == expected
    assert sizes[0] >= len(study.splits.grid) > 28
    assert sizes[1:] == [28, 28]


def test_groups_of_stages_keep_the_limit(make_small, monkeypatch):
    """Groups 64, 6, 2 and 2 units by 7; the image alone has more."""
    study = make_small(
        "truth",
        stage_0=lambda f: tf.tile(f, (1, 3)),
        stage_1=tf.sin,
        stage_2=tf.cos,
    )
    groups = []

    def call(fn: Callable, points: np.ndarray, size: int) -> dict:
        stages = evaluate_in_batches(fn, points, size)
        groups.append([*stages])
        return stages

    limit = 4 * 7 * len(study.splits.grid)
    monkeypatch.setattr(output_analysis, "MAX_GROUP_BYTES", limit)
    monkeypatch.setattr(output_analysis, "evaluate_in_batches", call)
    assert list(dict(study.read_stages())) == study.stages
    assert groups == [["image"], ["stage_0"], ["stage_1", "stage_2"]]


@pytest.mark.usefixtures("no_layout")
def test_metrics_of_a_part_of_the_grid(table):
    study = load(table, "--eval_points=20")

    assert not study.splits.is_complete
    assert not study.curves

    # Maps are of points of their own, and of none that does not exist.
    maps = study.for_maps
    assert np.isfinite(maps.error_ratio).all()

    existing = {*map(tuple, study.splits.all.factors)}
    assert existing >= {*map(tuple, maps.splits.grid)}

    for section in ("errors", "kernels"):
        for exhibit in MAKERS[section]([study]).exhibits:
            assert "schmidt" not in exhibit.name
    metrics = compute_metrics(study)

    assert "additive_share" not in metrics
    assert np.isfinite(metrics["factorization"]).all()

    # Grid steps to the nearest point that training may see.
    index = study.dataset.space.to_index(study.splits.grid)
    expected = np.maximum(index[:, 1] - 1, 0)
    first, second, _ = index.T
    kept = (first > 0) | (second > 2)  # the others miss neighbors
    distance = study.border_distance

    assert_array_equal(distance[kept], expected[kept])


@pytest.mark.usefixtures("traced")
def test_other_points_have_the_results_of_an_analysis_of_their_own(
    tmp_path,
):
    """Although both share traced functions."""
    network = ("--model=mlp", "--width=8", "--depth=1")
    data = ("--flagfile=smoke.flags", "--grid_size=8", "--region=square:3-4")
    analysis = make_untrained(tmp_path, *data, *network)
    grid = analysis.splits.grid
    assert len(analysis.metrics["image"]) == len(grid)
    part = analysis.for_explorer(20)
    places = part.splits.grid
    assert len(places) < len(grid)

    is_same = (places[:, None] == grid).all(axis=2)
    rows = is_same.argmax(axis=1)
    for stage, metric in analysis.metrics.items():
        assert_allclose(part.metrics[stage], metric[rows], rtol=1e-4)
    images = analysis.evaluation.images[rows]
    assert_allclose(part.evaluation.images, images, atol=1e-5)
    alone = RunAnalysis(analysis.model, part.dataset)
    for stage, (units, maps) in alone.explored_units.items():
        part_units, part_maps = part.explored_units[stage]
        assert len(set(units)) == len(units)
        assert_array_equal(part_units, units)
        assert_allclose(part_maps, maps, atol=1e-5)
    # A complete grid is shown whole.
    for same in (analysis.for_maps, analysis.for_pairs):
        assert same is analysis
    assert analysis.for_explorer(4096) is analysis
