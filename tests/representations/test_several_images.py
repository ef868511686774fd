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
from tfcomp.representations import readers

pytestmark = pytest.mark.usefixtures("untraced", "few_permutations")

BY_POINT = IMAGES.reshape(6, PLACES, 16, 16, 1)
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


def test_all_images_of_points_are_rendered(dataset):
    images, rows = dataset.render_all(TABLE.points[[3, 0]], 1000)

    assert rows.tolist() == [0] * PLACES + [1] * PLACES
    expected = np.concatenate(BY_POINT[[3, 0]])
    assert_array_equal(images, expected)


def test_a_sample_has_an_equal_share_of_each_point(dataset):
    images, rows = dataset.render_all(TABLE.points, 25)
    again, _ = dataset.render_all(TABLE.points, 25)

    counts = np.bincount(rows)
    assert counts.tolist() == [4] * 6
    for image, row in zip(images, rows, strict=True):
        is_pixel = BY_POINT[row] == image
        is_image = is_pixel.all(axis=(1, 2, 3))
        assert is_image.any()
    assert_array_equal(again, images)


def test_a_sample_has_each_point_at_least_once(dataset):
    images, rows = dataset.render_all(TABLE.points, 1)

    assert len(images) == 6
    assert rows.tolist() == [0, 1, 2, 3, 4, 5]


def test_single_images_are_those_of_render_array(dataset):
    table = tfcomp.FactorTable(MEANS, COMBINATIONS)
    single = tfcomp.evaluate(table.draw, table).dataset

    images, rows = single.render_all(table.points, 2)

    expected = single.render_array(table.points)
    assert single.truth_label != dataset.truth_label
    assert_array_equal(images, expected)
    assert rows.tolist() == [0, 1, 2, 3, 4, 5]


def test_readers_are_trained_and_rated_on_single_images(monkeypatch):
    given = {}

    def fit(model, images, index, epochs):
        given["images"] = images
        given["classes"] = index

    monkeypatch.setattr(readers, "_fit", fit)
    monkeypatch.setattr(readers, "MAX_IMAGES", len(IMAGES))

    reader = tfcomp.train_reader(TABLE)

    images = IMAGES[..., None]
    assert_array_equal(given["images"], images)
    assert_array_equal(given["classes"], CLASSES)
    accuracy = reader.accuracy.set_index("factor")
    shifted = np.roll(images, 1, axis=2)
    for name, inputs in (("true", images), ("shifted", shifted)):
        is_right = reader.read(inputs) == CLASSES
        assert_allclose(accuracy[name], is_right.mean(axis=0))


def test_readers_of_means_alone_are_refused():
    reader = LookUp(MEANS, COMBINATIONS)

    with pytest.raises(tfcomp.ConfigError, match="shape.*size"):
        tfcomp.evaluate(
            Sampler(),
            TABLE,
            REGION,
            reader=reader,
        )


def test_a_perfect_sampler_reaches_its_ceiling(rng):
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
    gap = table["accuracy"] - table["ceiling"]
    near_gap = table["near"] - table["near_ceiling"]
    assert gap.abs().max() < 0.1
    assert near_gap.abs().max() < 0.1
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
    brightness,
    count,
):
    """Of single pixels at random places, whose mean is dark."""
    images = np.eye(64, dtype=np.float32).reshape(-1, 8, 8)
    table = tfcomp.FactorTable(images, np.arange(64)[:, None] % 4)
    assert table.draw(table.points).max() < 0.1

    def sample(factors: np.ndarray) -> np.ndarray:
        return brightness * images[factors[:, 0].astype(int)]

    notes = tfcomp.evaluate(sample, table, "factor_0:3-3").dataset.notes

    notes = [note for note in notes if note.startswith("outputs from")]
    assert len(notes) == count
    for note in notes:
        assert "images from 0 to 1:" in note


def test_training_images_from_other_combinations(dataset):
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
        together = np.vstack([others, row])
        rank = np.linalg.matrix_rank(others)
        if np.linalg.matrix_rank(together) > rank:
            continue  # the others do not have this value

        weights = np.linalg.pinv(others) @ images[~is_own]
        own = images[is_own]
        rest = own - row @ weights
        from_mean = own - images.mean(axis=0)
        error += np.square(rest).sum()
        spread += np.square(from_mean).sum()

    r2 = explain_training(dataset)["1"]
    assert r2 == pytest.approx(1 - error / spread, abs=1e-6)


def test_additive_images_fit_the_training_images(dataset):
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
    effects, *_ = np.linalg.lstsq(design, images, rcond=None)
    expected = design @ effects
    additive = predictions["additive"].reshape(6, -1)
    places = find_combinations(classes)
    assert_allclose(additive[places], expected, atol=1e-6)
