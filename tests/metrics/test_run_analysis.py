"""Scores of all points in blocks, and analyses at other points."""

import shutil
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp import analyze
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics import point_scores, traced_model
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.run_metrics import compute_metrics
from tfcomp.metrics.scores import average_scores, score_images
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.models.stages import evaluate_in_batches, make_model
from tfcomp.report.report_build import MAKERS

SIZES = (2, 4, 5)
FILES = ("run.flags", "metrics.json", "model.keras")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 36 of 40 combinations of a name, a value and an angle."""
    path = tmp_path_factory.mktemp("table") / "own.npz"
    classes = np.stack(np.unravel_index(np.arange(40), SIZES), axis=1)[4:]
    images = np.random.default_rng(0).integers(0, 255, (36, 8, 6), np.uint8)
    kinds = ["categorical", "ordered", "periodic"]
    np.savez(path, images=images, classes=classes, kinds=kinds)
    return path


def load(table: Path, *flags: str) -> RunAnalysis:
    config = parse_config(
        [
            *("--dataset=table", f"--data={table}", "--region=factor_1:2-3"),
            *("--model=mlp", "--width=8", "--encoding=ramp", *flags),
        ]
    )
    dataset = make_dataset(config)
    keras.utils.set_random_seed(0)
    model = make_model(config, dataset, "float32")
    return RunAnalysis.of_run(LoadedRun(table, config, dataset, model, {}, ""))


def test_streamed_scores_are_those_of_all_points(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfcomp.datasets.splits.MAX_ANALYZED", 10)
    monkeypatch.setattr(point_scores, "BLOCK", 7)
    study = load(table, "--eval_points=0", "--num_train=9")
    splits, dataset = study.splits, study.dataset
    assert splits.is_streamed and len(splits.scored) == 36
    assert study.evaluation.images.shape == (10, 8, 6, 1)
    every = splits.scored
    images = study.run.model.predict(every.factors, verbose=0)
    truth = dataset.render_array(every.factors)
    assert list(study.evaluation.scores) == ["id", "ood", "id_test"]
    for name, rows in every.subsets.items():
        pairs = (images[rows], truth[rows], None, dataset.polarity)
        expected = average_scores(score_images(*pairs, dataset.reference))
        found = study.evaluation.scores[name]
        assert found["num_peaks"] is expected["num_peaks"] is None
        for key in ("mse", "relative_mse"):
            assert found[key] == pytest.approx(expected[key], rel=1e-6)


def test_blocks_and_smaller_calls_change_no_bit(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls have all points, and fewer once memory was exhausted."""
    study = load(table)
    whole, sizes = study.evaluation.scores, []

    def call(fn: Callable, points: np.ndarray, size: int = 28) -> dict:
        sizes.append(size)
        if size > 28:
            raise tf.errors.ResourceExhaustedError(None, None, "memory")
        return evaluate_in_batches(fn, points, size)

    monkeypatch.setattr(point_scores, "BLOCK", 5)
    monkeypatch.setattr(traced_model, "evaluate_in_batches", call)
    found = RunAnalysis(study.model, study.dataset)
    again = found.renew()
    assert found.evaluation.scores == again.evaluation.scores == whole
    assert sizes[0] >= len(study.splits.grid) > 28
    assert sizes[1:] == [28, 28]


def test_groups_of_stages_keep_the_limit(
    make_study: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups 256, 6, 2 and 2 units by 7; the image alone has more."""
    stages = {"stage_0": lambda f: tf.tile(f, (1, 3)), "stage_1": tf.sin}
    study, groups = make_study("truth", **stages, stage_2=tf.cos), []

    def call(fn: Callable, points: np.ndarray, size: int) -> dict:
        found = evaluate_in_batches(fn, points, size)
        groups.append([*found])
        return found

    limit = 4 * 7 * len(study.splits.grid)
    monkeypatch.setattr(traced_model, "MAX_GROUP_BYTES", limit)
    monkeypatch.setattr(traced_model, "evaluate_in_batches", call)
    found = RunAnalysis(study.model, study.dataset).read_stages()
    assert [name for name, _ in found] == study.stages
    assert groups == [["image"], ["stage_0"], ["stage_1", "stage_2"]]


def test_metrics_of_a_part_of_the_grid(table: Path) -> None:
    study = load(table, "--eval_points=20")
    assert not study.splits.is_complete
    assert not study.curves and not study.tuning
    # Maps are of points of their own, and of none that does not exist.
    assert np.isfinite(study.for_maps.error_ratio).all()
    known = {*map(tuple, study.splits.all.factors)}
    assert known >= {*map(tuple, study.for_maps.splits.grid)}
    exhibits = [
        e for n in ("errors", "kernels") for e in MAKERS[n]([study]).exhibits
    ]
    assert not [e.name for e in exhibits if "schmidt" in e.name]
    measures = compute_metrics(study)
    assert "additive_share" not in measures
    assert np.isfinite(measures["factorization"]).all()
    # Grid steps to the nearest point that training may see.
    index = study.dataset.space.to_index(study.splits.grid)
    expected = np.maximum(index[:, 1] - 1, 0)
    gone = (index[:, 0] == 0) & (index[:, 1] <= 2)  # beside what is missing
    np.testing.assert_array_equal(study.border_distance[~gone], expected[~gone])


def test_other_points_have_the_results_of_an_analysis_of_their_own(
    smoke_run: RunConfig,
) -> None:
    """Although both share traced functions."""
    analysis = RunAnalysis.of_run(load_run(smoke_run.run_dir))
    analysis.metrics  # noqa: B018 (traced)
    part = analysis.for_explorer(40)
    assert len(part.splits.grid) < len(analysis.splits.grid)
    alone = RunAnalysis(analysis.model, part.dataset)
    for stage, metric in alone.metrics.items():
        np.testing.assert_allclose(part.metrics[stage], metric, rtol=1e-4)
    found, expected = part.evaluation.images, alone.evaluation.images
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for stage, (units, maps) in alone.shown_units.items():
        assert units.tolist() == part.shown_units[stage][0].tolist()
        np.testing.assert_allclose(part.shown_units[stage][1], maps, atol=1e-5)
    assert len(analysis.metrics["image"]) == len(analysis.splits.grid)
    # A complete grid is shown whole.
    assert analysis.for_maps is analysis and analysis.for_pairs is analysis
    assert analysis.for_explorer(4096) is analysis


def test_no_results_are_written_into_the_run(
    smoke_run: RunConfig, tmp_path: Path
) -> None:
    """Only the report, and the data of TensorBoard's projector."""
    (events,) = Path(smoke_run.run_dir).glob("*tfevents*")
    for name in (*FILES, events.name):
        shutil.copy(Path(smoke_run.run_dir, name), tmp_path)
    command = ["analyze", str(tmp_path), "--sections=manifolds"]
    assert analyze.main(command) == 0
    made = {path.name for path in tmp_path.iterdir()} - {*FILES, events.name}
    assert made == {"analysis", "projector", "projector_config.pbtxt"}
