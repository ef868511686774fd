"""Readers, notes and predictors see single images, and not their means."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tfcomp
from tests.representations.several_images import (
    CLASSES,
    COMBINATIONS,
    IMAGES,
    MEANS,
    PLACES,
    REGION,
    TABLE,
    LookUp,
    Sampler,
    find_combinations,
)
from tfcomp.datasets import Dataset
from tfcomp.datasets.solvable import explain_training
from tfcomp.metrics.references import predict_references

IS_OOD = (CLASSES >= (1, 1)).all(axis=1)  # of `REGION`
IS_TRAINED = (CLASSES != (1, 1)).any(axis=1)  # of `dataset`


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """One combination is held out."""
    return tfcomp.evaluate(TABLE.draw, TABLE, "shape:#1,size:#1").dataset


def make_design(classes: np.ndarray) -> np.ndarray:
    """One-hot codes of the shape and the size, [n, 5]."""
    shape, size = classes.T
    return np.hstack([np.eye(3)[shape], np.eye(2)[size]])


def test_all_images_of_points_are_rendered(dataset) -> None:
    images, rows = dataset.render_all(TABLE.points[[3, 0]], 1000)

    assert rows.tolist() == [0] * PLACES + [1] * PLACES
    by_point = IMAGES.reshape(6, PLACES, 16, 16, 1)
    assert_array_equal(images, np.concatenate(by_point[[3, 0]]))


def test_a_sample_has_an_equal_share_of_each_point(dataset) -> None:
    images, rows = dataset.render_all(TABLE.points, 25)
    again, _ = dataset.render_all(TABLE.points, 25)

    assert np.bincount(rows).tolist() == [4] * 6
    by_point = IMAGES.reshape(6, PLACES, 16, 16, 1)
    for image, row in zip(images, rows, strict=True):
        is_same = (by_point[row] == image).all(axis=(1, 2, 3))
        assert is_same.any()
    assert_array_equal(again, images)
    _, rows = dataset.render_all(TABLE.points, 1)
    assert len(rows) == 6


def test_single_images_are_those_of_render_array(dataset) -> None:
    table = tfcomp.FactorTable(MEANS, COMBINATIONS)
    single = tfcomp.evaluate(table.draw, table).dataset

    images, rows = single.render_all(table.points, 2)

    assert single.truth_label != dataset.truth_label
    assert_array_equal(images, single.render_array(table.points))
    assert rows.tolist() == [0, 1, 2, 3, 4, 5]


def test_accuracy_is_of_single_images() -> None:
    reader = tfcomp.train_reader(TABLE)

    accuracy = reader.accuracy.set_index("factor")

    images = IMAGES[..., None]
    shifted = np.roll(images, 1, axis=2)
    for name, inputs in (("true", images), ("shifted", shifted)):
        is_right = reader.read(inputs) == CLASSES
        assert_allclose(accuracy[name], is_right.mean(axis=0))
    assert (accuracy["true"] > 0.9).all()


def test_readers_of_means_alone_are_refused() -> None:
    reader = LookUp(MEANS, COMBINATIONS)

    with pytest.raises(tfcomp.ConfigError, match="shape.*size"):
        tfcomp.evaluate(Sampler(), TABLE, REGION, reader=reader)


def test_a_perfect_sampler_reaches_its_ceiling(rng) -> None:
    """The reader reads the size wrong in about a third of the images."""
    readings = CLASSES.copy()
    readings[:, 1] ^= rng.random(len(IMAGES)) < 0.3
    # Equal images are read alike.
    _, first, same = np.unique(
        IMAGES.reshape(len(IMAGES), -1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    readings = readings[first[same.ravel()]]

    report = tfcomp.evaluate(
        Sampler(),
        TABLE,
        REGION,
        reader=LookUp(IMAGES, readings),
        samples=40,
    )

    table = report.tables["readings"]
    assert ((table["accuracy"] - table["ceiling"]).abs() < 0.1).all()
    assert ((table["near"] - table["near_ceiling"]).abs() < 0.1).all()
    table = table[table["level"] == "any"].set_index(["subset", "factor"])
    is_right = readings[:, 1] == CLASSES[:, 1]
    for subset, rows in (("id", ~IS_OOD), ("ood", IS_OOD)):
        ceiling = table["ceiling"][subset]
        share = is_right[rows].mean()
        assert 0.4 < share < 0.95
        assert ceiling["size"] == pytest.approx(share)
        assert ceiling["shape"] == 1
        assert ceiling["all"] == ceiling["size"]


@pytest.mark.parametrize(("brightness", "count"), [(1, 0), (255, 1)])
def test_a_perfect_sampler_has_the_range_of_the_images(
    brightness, count
) -> None:
    """Of single pixels at random places, whose mean is dark."""
    images = np.eye(64, dtype=np.float32).reshape(-1, 8, 8)
    table = tfcomp.FactorTable(images, np.arange(64)[:, None] % 4)
    assert table.draw(table.points).max() < 0.1

    def sample(factors: np.ndarray) -> np.ndarray:
        return brightness * images[factors[:, 0].astype(int)]

    notes = tfcomp.evaluate(sample, table, "factor_0:3-3").dataset.notes

    notes = [note for note in notes if note.startswith("outputs from")]
    assert len(notes) == count
    assert all("images from 0 to 1:" in note for note in notes)


def test_training_images_from_other_combinations(dataset) -> None:
    """Least squares without all images of a combination, one by one."""
    design = make_design(CLASSES[IS_TRAINED])
    images = IMAGES[IS_TRAINED].reshape(len(design), -1)
    groups = find_combinations(CLASSES)[IS_TRAINED]
    error = 0.0
    spread = 0.0
    for group in np.unique(groups):
        is_own = groups == group
        others = design[~is_own]
        row = design[is_own][0]
        ranks = [np.linalg.matrix_rank(others)]
        ranks.append(np.linalg.matrix_rank(np.vstack([others, row])))
        if ranks[0] < ranks[1]:
            continue  # the others do not have this value

        weights = np.linalg.pinv(others) @ images[~is_own]
        error += np.square(images[is_own] - row @ weights).sum()
        spread += np.square(images[is_own] - images.mean(axis=0)).sum()

    r2 = explain_training(dataset)["1"]
    assert r2 == pytest.approx(1 - error / spread, abs=1e-6)


def test_additive_images_fit_the_training_images(dataset) -> None:
    """Few images are trained on: their mean is not the mean of all."""
    rows = np.flatnonzero(IS_TRAINED)[::7]
    classes = CLASSES[rows]
    splits = dataclasses.replace(dataset.splits, train=np.float32(classes))
    few = dataclasses.replace(
        dataset,
        splits=splits,
        draw_train=lambda index: IMAGES[rows[index], ..., None],
    )

    predictions = predict_references(few)

    images = IMAGES[rows].reshape(len(rows), -1)
    mean = predictions["mean_image"][0].ravel()
    assert_allclose(mean, images.mean(axis=0), atol=1e-6)
    design = make_design(classes)
    expected = design @ np.linalg.lstsq(design, images, rcond=None)[0]
    additive = predictions["additive"].reshape(6, -1)
    places = find_combinations(classes)
    assert_allclose(additive[places], expected, atol=1e-6)
