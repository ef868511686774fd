"""R^2 of outputs, of predictors without a network, and of ignorant ones."""

import dataclasses

import numpy as np
import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.evaluation.point_scores import Evaluation
from tfcomp.evaluation.reference_scores import (
    compute_r2,
    list_ignorant,
    score_certified,
    score_references,
)
from tfcomp.evaluation.verbalize import format_references, list_references

SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,8,8"
).split()


def make(region: str, *flags: str) -> Dataset:
    return make_dataset(parse_config([*SPRITES, f"--region={region}", *flags]))


@pytest.fixture(scope="module")
def diagonal() -> Dataset:
    return make("wiedemer:diagonal:.4", "--sprite_sizes=3,3,4,4,4")


def test_r2_by_its_definition() -> None:
    truth = np.random.default_rng(0).random((5, 4, 4, 1))
    assert compute_r2(truth, truth) == 1
    noise = 0.1 * np.random.default_rng(1).normal(size=truth.shape)
    total = sum(((image - truth.mean(0)) ** 2).sum() for image in truth)
    by_hand = 1 - (noise**2).sum() / total
    assert compute_r2(truth + noise, truth) == pytest.approx(by_hand)
    alike = np.ones_like(truth)
    assert compute_r2(alike, alike) is None
    assert compute_r2(alike * np.nan, truth) is None


def test_errors_count_where_they_are(diagonal: Dataset) -> None:
    """Wrong on others alone: certified 1, others below, ood between."""
    found = certify_dataset(diagonal)[1]
    truth = diagonal.grid_images
    wrong = diagonal.splits.is_ood & ~found.certified
    images = np.where(wrong[:, None, None, None], 0, truth)
    scores = score_certified(diagonal, Evaluation(images, truth, {}), found)
    assert scores["id"] == scores["certified"] == 1
    assert scores["others"] < 0 < scores["ood"] < 1


def test_references_equal_their_definition(diagonal: Dataset) -> None:
    """By loops over combinations: the most frequent value in training."""
    truth, splits = diagonal.grid_images, diagonal.splits
    found = score_references(diagonal, truth)
    held_out = splits.grid[splits.is_ood]
    for column, factor in enumerate(diagonal.space):
        train = splits.train[:, column].tolist()
        most = max(sorted(set(train)), key=train.count)
        others = [[*p[:column], most, *p[column + 1 :]] for p in held_out]
        images = diagonal.render_array(np.array(others, np.float32))
        expected = compute_r2(images, truth[splits.is_ood])
        scores = found[f"without_{factor.name}"]
        assert scores["ood_r2"] == pytest.approx(expected, abs=1e-6)
        assert "id" not in scores
    assert found["nearest_id"]["id_r2"] == pytest.approx(1)
    assert 0.5 < found["additive"]["id_r2"] < 1


def test_a_split_where_only_the_ellipse_turns() -> None:
    """Ignoring the turns has .92, half turns .95: above many decoders."""
    dataset = make("wiedemer:orthogonal")
    found = score_references(dataset, dataset.grid_images)
    names = "without_orientation", "modulo_orientation"
    r2 = [round(found[name]["ood_r2"], 2) for name in names]
    assert r2 == [0.92, 0.95]
    assert list(list_references(found))[2] == "modulo_orientation"
    last = format_references(found).splitlines()[-1]
    assert last.split()[:2] == ["modulo_orientation", "-"]
    # Half of the turns of hearts: the squares and ellipses are the same.
    points = dict(list_ignorant(dataset))["modulo_orientation"]
    angles = dataset.splits.grid[dataset.splits.is_ood][:, 2]
    assert set(points[:, 2]) < set(angles.tolist())
    np.testing.assert_array_equal(points[:, 2] % 180, angles % 180)


def test_combinations_that_do_not_exist_have_none(diagonal: Dataset) -> None:
    """Held-out squares, which stand for all shapes, are missing."""
    every, splits = diagonal.splits.all, diagonal.splits
    shape = dict(list_ignorant(diagonal))["without_shape"][0, 0]
    known = every[~every.is_ood | (every.factors[:, 0] != shape)]
    splits = dataclasses.replace(splits, points=known, existing=known)
    lacking = dataclasses.replace(diagonal, splits=splits)
    assert "without_shape" not in dict(list_ignorant(lacking))
