"""R^2 of predictors without a network, and of those that ignore a factor."""

import dataclasses

import numpy as np
import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.evaluation.reference_scores import (
    compute_r2,
    list_ignorant,
    score_references,
)
from tfcomp.evaluation.verbalize import format_references, list_references

SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,8,8"
).split()


def make(region: str, *flags: str) -> Dataset:
    return make_dataset(parse_config([*SPRITES, f"--region={region}", *flags]))


def test_equal_their_definition() -> None:
    """By loops over combinations: the most frequent value in training."""
    dataset = make("wiedemer:diagonal:.4")
    truth = dataset.grid_images
    found = score_references(dataset, truth)
    splits = dataset.splits
    held_out = splits.grid[splits.is_ood]
    for column, factor in enumerate(dataset.space):
        train = splits.train[:, column].tolist()
        most = max(sorted(set(train)), key=train.count)
        others = [[*p[:column], most, *p[column + 1 :]] for p in held_out]
        images = dataset.render_array(np.array(others, np.float32))
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
    lines = format_references(found).splitlines()
    assert lines[-1].split() == [
        "modulo_orientation",
        "-",
        *lines[-1].split()[2:],
    ]
    # Half of the turns of hearts: the squares and ellipses are the same.
    points = dict(list_ignorant(dataset))["modulo_orientation"]
    angles = dataset.splits.grid[dataset.splits.is_ood][:, 2]
    assert set(points[:, 2]) < set(angles.tolist())
    np.testing.assert_array_equal(points[:, 2] % 180, angles % 180)


def test_a_factor_that_does_nothing_in_training() -> None:
    """Only squares turn: nothing is known of the turns of hearts."""
    dataset = make("shape:#1-2,orientation:#1-3")
    found = score_references(dataset, dataset.grid_images)
    best = list(list_references(found))[2]
    assert best in ("without_orientation", "modulo_orientation")
    assert found[best]["ood_r2"] == pytest.approx(0.815, abs=0.01)
    assert found[best]["ood_new_r2"] < found[best]["ood_r2"]


def test_a_donut_needs_both_factors() -> None:
    dataset = make_dataset(parse_config(["--flagfile=smoke.flags"]))
    found = score_references(dataset, dataset.grid_images)
    for factor in "xy":
        assert found[f"without_{factor}"]["ood_r2"] < 0
    assert not any(name.startswith("modulo_") for name in found)


def test_combinations_that_do_not_exist_have_none() -> None:
    """Held-out squares, which stand for all shapes, are missing."""
    dataset = make("wiedemer:diagonal:.4")
    every, splits = dataset.splits.all, dataset.splits
    shape = dict(list_ignorant(dataset))["without_shape"][0, 0]
    known = every[~every.is_ood | (every.factors[:, 0] != shape)]
    splits = dataclasses.replace(splits, points=known, existing=known)
    lacking = dataclasses.replace(dataset, splits=splits)
    assert "without_shape" not in dict(list_ignorant(lacking))
