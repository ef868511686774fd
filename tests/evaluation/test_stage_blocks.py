"""Stages in blocks of units: the same numbers as in one piece."""

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.analysis.features import compute_gram, normalize_rows
from tfcomp.analysis.manifolds import compute_pca
from tfcomp.analysis.probes import compute_probe_scores, probe_rows
from tfcomp.analysis.tuning import (
    combine_units,
    compute_tuning,
    decompose_units,
    select_units,
)
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.evaluation import evaluator, stage_blocks
from tfcomp.evaluation.stage_blocks import (
    SHOWN_UNITS,
    StageReader,
    reduce_stage,
)
from tfcomp.models.stages import make_stage_model


@pytest.fixture(scope="module")
def stage(smoke_run: RunConfig):
    """Grid, region, activations in one piece, and in blocks."""
    model = keras.models.load_model(Path(smoke_run.run_dir) / "model.keras")
    splits = make_dataset(smoke_run).splits
    whole = make_stage_model(model, ["stage_1"])(splits.grid)["stage_1"]
    whole = np.reshape(whole, (len(splits.grid), -1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_blocks, "MAX_BYTES", 100_000)
        reader = StageReader(model, len(splits.grid), ["stage_1"])

    def read() -> Iterator[np.ndarray]:
        ((_, _, blocks),) = reader.iterate(splits.grid)
        yield from blocks

    return splits, whole, read


def test_blocks_are_the_stage(stage) -> None:
    splits, whole, blocks = stage
    parts = list(blocks())
    assert len(parts) > 2
    assert all(part.nbytes <= 100_000 for part in parts)
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, atol=1e-6)


def test_rotation_in_blocks_keeps_distances(stage) -> None:
    splits, whole, blocks = stage
    one = normalize_rows(whole, splits.is_ood)
    gram = compute_gram(blocks(), splits.is_ood)
    np.testing.assert_allclose(one @ one.T, gram, atol=1e-5)


def test_numbers_in_blocks(stage) -> None:
    splits, whole, blocks = stage
    expected = compute_tuning(whole, (12, 12))
    parts = list(blocks())
    tuning = combine_units(
        [decompose_units(part, (12, 12)) for part in parts], (12, 12)
    )
    np.testing.assert_allclose(
        tuning.variance, expected.variance, rtol=1e-4, atol=1e-9
    )
    np.testing.assert_array_equal(tuning.is_dead, expected.is_dead)
    targets = splits.grid[:, :2]

    def probe(rows: np.ndarray) -> dict:
        return probe_rows(rows, targets, splits.is_ood)

    # It passes by once, and is never there as a whole.
    passing = blocks()
    found = reduce_stage(
        passing, whole.shape[1], (12, 12), splits.is_ood, probe
    )
    assert next(passing, None) is None
    np.testing.assert_array_equal(found.tuning.variance, tuning.variance)
    scores = compute_probe_scores(whole, targets, splits.is_ood)
    assert found.probe == pytest.approx(scores, abs=1e-4)
    pca = compute_pca(whole, 3)
    np.testing.assert_allclose(
        found.components.explained[:3], pca.explained, atol=1e-5
    )
    assert len(found.units) == SHOWN_UNITS
    # The unit of the highest variance is first, however it was found.
    best = select_units(whole, tuning.variance, 1)[0]
    assert found.units[0] == best
    np.testing.assert_allclose(found.maps[0].ravel(), whole[:, best], atol=1e-6)


def test_dead_stage_shows_no_unit() -> None:
    dead = np.zeros((12, 5), np.float32)
    found = reduce_stage([dead], 5, (3, 4), np.arange(12) < 2, lambda rows: {})
    assert found.units.size == 0 and found.maps.shape == (0, 3, 4)


@pytest.mark.parametrize("max_bytes", [10, 4_000_000, 2**29])
def test_stages_in_groups_are_the_stages(
    smoke_run: RunConfig, max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_blocks, "MAX_GROUP_BYTES", max_bytes)
    model = keras.models.load_model(Path(smoke_run.run_dir) / "model.keras")
    grid = make_dataset(smoke_run).splits.grid
    whole = make_stage_model(model)(grid)
    found = StageReader(model, len(grid)).iterate(grid)
    parts = {name: np.concatenate(list(b), axis=1) for name, _, b in found}
    assert list(parts) == list(whole)
    for name, values in whole.items():
        expected = np.reshape(values, (len(grid), -1))
        np.testing.assert_allclose(parts[name], expected, atol=1e-6)


def test_one_visible_look_serves_the_report(
    make_study: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def watch(items: Iterator, name: str, unit: str, total: int) -> Iterator:
        looks.append((name, total))
        return items

    monkeypatch.setattr(evaluator, "show_progress", watch)
    study = make_study("truth", stage_1=lambda f: f)
    assert study.layers.summary["stage_1"]["probe_r2_id"] > 0.999
    assert study.tuning["stage_1"] is study.numbers["stage_1"].tuning
    assert looks == [("layers", 2)]


def test_a_block_is_gone_before_the_next(stage) -> None:
    """A block of a large stage has 2 GB."""
    splits, whole, blocks = stage
    earlier = []

    def watch() -> Iterator[np.ndarray]:
        for part in blocks():
            assert not any(block() is not None for block in earlier)
            fresh = part.copy()
            earlier.append(weakref.ref(fresh))
            del part
            yield fresh
            del fresh

    reduce_stage(
        watch(), whole.shape[1], (12, 12), splits.is_ood, lambda rows: {}
    )
    assert len(earlier) > 2
