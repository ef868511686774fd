"""One sentence on a run, and the cases in which it must not claim anything."""

import math
from typing import Any

import pytest

from tfcomp.report.verbalize import describe_scores, list_references


def describe(id_error: Any, ood_error: Any, **changes: Any) -> str:
    """The sentence on planted scores of 119 ID and 25 OOD points."""
    metrics = {
        "id": {"relative_mse": id_error, "position_accuracy": 1.0},
        "ood": {"relative_mse": ood_error, "position_accuracy": 0.12},
        "coverage": {"values": 1.0},
        "points": {"id": 119, "ood": 25},
    }
    return describe_scores(metrics | changes)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(0.0501, "is worse on"), (0.05, "draws"), (1.05, "fails on")],
)
def test_the_error_decides_on_the_verdict(error, verdict):
    sentence = describe(0.002, error)

    assert f"{verdict} held-out" in sentence
    assert f"there is {error:.2g}" in sentence
    assert "3 of 25 peaks" in sentence


@pytest.mark.parametrize("error", [0.001, None])
def test_a_network_that_fits_nothing_is_called_that_first(error):
    sentence = describe(0.0502, error)

    assert "does not fit" in sentence
    assert "draws" not in sentence
    assert "peaks" not in sentence
    assert ("held-out" in sentence) == (error is not None)


def test_of_several_images_the_mean_is_fitted():
    """The blank image has an error of 0.2; the mean image, 0.18."""
    scores = {
        "mse": 0.1802,
        "relative_mse": 0.901,
        "floor_mse": 0.18,
    }
    blank = scores | {"mse": 0.2, "relative_mse": 1.0}
    sentence = describe_scores({"id": scores, "ood": blank})
    assert "does not fit" not in sentence and "there is 1" in sentence
    unfitted = describe_scores({"id": blank, "ood": scores})
    assert "does not fit" in unfitted and "is 0.01" in unfitted


@pytest.mark.parametrize(
    ("reference", "image"),
    [
        ("blank 1", "a blank image"),
        ("mean training image", "the mean training image"),
    ],
)
def test_the_unit_of_the_error_is_named(reference, image):
    sentence = describe(0.002, 0.82, reference=reference)
    assert f"0.82 times {image}" in sentence


@pytest.mark.parametrize("error", [None, math.nan])
def test_missing_numbers_are_no_errors(error):
    unplaced = {"relative_mse": 0.7, "position_accuracy": error}

    assert "not a number" in describe(error, 0.5)
    assert "unknown" in describe(0.01, error)
    assert "peaks" not in describe(0.01, 0.7, ood=unplaced)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"coverage": {"values": 0.875}}, "87.5%"),
        ({"copies": {"num_copies": 24, "num_held_out": 25}}, "24 of their 25"),
    ],
)
def test_what_training_lacked_or_knew_is_said(changes, words):
    assert words in describe(0.01, 0.7, **changes)
    assert words not in describe(0.01, 0.7)


def test_without_a_region_nothing_was_held_out():
    assert "nothing was held out" in describe(0.01, None, points={"ood": 0})


def test_of_predictors_that_ignore_a_factor_the_best_is_listed():
    scores = {
        "nearest_id": {"ood": 0.7},
        "mean_over_x": {"ood": 0.2},
        "modulo_y": {"ood": 0.05},
    }
    assert list(list_references(scores)) == ["nearest_id", "modulo_y"]

    scores["modulo_y"] = {"id": 0.05}

    assert list(list_references(scores)) == ["nearest_id", "mean_over_x"]
