"""Readers, notes and predictors see single images, and not their means."""

import dataclasses

import numpy as np
import pytest

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


def test_all_images_of_points_are_rendered(dataset) -> None:
    points = TABLE.points[[3, 0]]
    images, rows = dataset.render_all(points, 1000)
    assert rows.tolist() == [0] * PLACES + [1] * PLACES
    expected = [*IMAGES[3 * PLACES : 4 * PLACES], *IMAGES[:PLACES]]
    np.testing.assert_array_equal(images[..., 0], expected)


def test_a_sample_has_an_equal_share_of_each_point(dataset) -> None:
    images, rows = dataset.render_all(TABLE.points, 25)
    assert np.bincount(rows).tolist() == [4] * 6
    for image, row in zip(images, rows, strict=True):
        own = IMAGES[row * PLACES : (row + 1) * PLACES, ..., None]
        assert (own == image).all(axis=(1, 2, 3)).any()
    again, _ = dataset.render_all(TABLE.points, 25)
    np.testing.assert_array_equal(again, images)
    assert len(dataset.render_all(TABLE.points, 1)[1]) == 6


def test_single_images_are_those_of_render_array(dataset) -> None:
    table = tfcomp.FactorTable(MEANS, COMBINATIONS)
    single = tfcomp.evaluate(table.draw, table).dataset
    assert (single.truth_label, dataset.truth_label) == (
        "truth",
        "mean of true images",
    )
    images, rows = single.render_all(table.points, 2)
    np.testing.assert_array_equal(images, single.render_array(table.points))
    assert rows.tolist() == [*range(6)]


def test_accuracy_is_of_single_images() -> None:
    reader = tfcomp.train_reader(TABLE)
    accuracy = reader.accuracy.set_index("factor")
    right = reader.read(IMAGES[..., None]) == CLASSES
    np.testing.assert_allclose(accuracy["true"], right.mean(axis=0))
    shifted = np.roll(IMAGES, 1, axis=2)[..., None]
    right = reader.read(shifted) == CLASSES
    np.testing.assert_allclose(accuracy["shifted"], right.mean(axis=0))
    assert (accuracy["true"] > 0.9).all()


def test_readers_of_means_alone_are_refused() -> None:
    reader = LookUp(MEANS, COMBINATIONS)
    with pytest.raises(
        tfcomp.ConfigError,
        match="of no use.*shape.*size",
    ):
        tfcomp.evaluate(
            Sampler(),
            TABLE,
            REGION,
            reader=reader,
        )


def test_a_perfect_sampler_reaches_its_ceiling() -> None:
    """The reader reads the size wrong in about a third of the images."""
    is_wrong = np.random.default_rng(1).random(len(IMAGES)) < 0.3
    wrong = CLASSES.copy()
    wrong[is_wrong, 1] = 1 - wrong[is_wrong, 1]
    # Equal images are read alike.
    flat = IMAGES.reshape(len(IMAGES), -1)
    _, first, same = np.unique(
        flat, axis=0, return_index=True, return_inverse=True
    )
    wrong = wrong[first[same.ravel()]]
    reader = LookUp(IMAGES, wrong)
    found = tfcomp.evaluate(
        Sampler(),
        TABLE,
        REGION,
        reader=reader,
        samples=40,
    )

    rows = found.tables["readings"]
    assert ((rows["accuracy"] - rows["ceiling"]).abs() < 0.1).all()
    assert ((rows["near"] - rows["near_ceiling"]).abs() < 0.1).all()
    for subset, chosen in (("id", ~IS_OOD), ("ood", IS_OOD)):
        is_row = (rows["subset"] == subset) & (rows["level"] == "any")
        ceiling = rows[is_row].set_index("factor")["ceiling"]
        share = (wrong == CLASSES)[chosen, 1].mean()
        assert 0.4 < share < 0.95
        assert ceiling["size"] == pytest.approx(share)
        assert ceiling["shape"] == 1 and ceiling["all"] == ceiling["size"]


def test_a_perfect_sampler_has_the_range_of_the_images() -> None:
    """Of single pixels at random places, whose mean is dark."""
    images = np.eye(64, dtype=np.float32).reshape(-1, 8, 8)
    table = tfcomp.FactorTable(images, np.arange(64)[:, None] % 4)
    assert table.draw(table.points).max() < 0.1

    def find_notes(brightness: int) -> list[str]:
        def draw(factors: np.ndarray) -> np.ndarray:
            return brightness * images[factors[:, 0].astype(int)]

        notes = tfcomp.evaluate(draw, table, "factor_0:3-3").dataset.notes
        return [note for note in notes if note.startswith("outputs from")]

    assert not find_notes(1)
    (note,) = find_notes(255)
    assert "images from 0 to 1:" in note


def test_training_images_from_other_combinations(dataset) -> None:
    """Least squares without all images of a combination, one by one."""
    shape, size = np.eye(3)[CLASSES[:, 0]], np.eye(2)[CLASSES[:, 1]]
    design = np.concatenate([shape, size], axis=1)[IS_TRAINED]
    images = IMAGES[IS_TRAINED].reshape(len(design), -1)
    groups = find_combinations(CLASSES)[IS_TRAINED]
    error = spread = 0.0
    for group in np.unique(groups):
        is_other = groups != group
        fit = np.linalg.pinv(design[is_other]) @ images[is_other]
        row = design[~is_other][:1]
        if np.linalg.matrix_rank(np.vstack([design[is_other], row])) > (
            np.linalg.matrix_rank(design[is_other])
        ):
            continue  # the others do not have this value
        error += np.square(images[~is_other] - row @ fit).sum()
        spread += np.square(images[~is_other] - images.mean(axis=0)).sum()
    found = explain_training(dataset)
    assert found["1"] == pytest.approx(1 - error / spread, abs=1e-6)


def test_additive_images_fit_the_training_images(dataset) -> None:
    """Few images are trained on: their mean is not the mean of all."""
    rows = np.flatnonzero(IS_TRAINED)[::7]
    splits = dataclasses.replace(
        dataset.splits,
        train=CLASSES[rows].astype(np.float32),
    )
    few = dataclasses.replace(
        dataset,
        splits=splits,
        draw_train=lambda chosen: IMAGES[rows[chosen], ..., None],
    )
    drawn = predict_references(few)
    shape, size = np.eye(3)[CLASSES[rows, 0]], np.eye(2)[CLASSES[rows, 1]]
    design = np.concatenate([shape, size], axis=1)
    images = IMAGES[rows].reshape(len(rows), -1)
    fitted = design @ np.linalg.lstsq(design, images, rcond=None)[0]
    places = find_combinations(CLASSES)[rows]
    additive = drawn["additive"].reshape(6, -1)[places]
    np.testing.assert_allclose(additive, fitted, atol=1e-6)
    mean = drawn["mean_image"][0].ravel()
    np.testing.assert_allclose(mean, images.mean(axis=0), atol=1e-6)
