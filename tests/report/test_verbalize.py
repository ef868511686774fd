"""One sentence on a run, and the cases in which it must not claim anything."""

import math
from typing import Any

import pytest

from tfcomp.report.verbalize import describe_references, describe_scores

COVERED = {"combinations": 0.8, "values": 1.0, "pixels": 1.0}


def say(
    known: float | None,
    held_out: float | None,
    places: float | None = None,
    **more: Any,
) -> str:
    """The sentence on planted scores of 119 ID and 25 OOD points."""
    metrics = {
        "id": {"relative_mse": known, "position_accuracy": 1.0},
        "ood": {"relative_mse": held_out, "position_accuracy": places},
        "coverage": COVERED,
        "points": {"id": 119, "ood": 25},
    }
    return describe_scores(metrics | more)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(0.0501, "is worse on"), (0.05, "draws"), (1.05, "fails on")],
)
def test_the_error_decides_on_the_verdict(error: float, verdict: str) -> None:
    sentence = say(0.002, error, 0.12)
    assert f"{verdict} held-out combinations" in sentence
    assert "; 3 of 25 held-out positions" in sentence


def test_a_network_that_fits_nothing_is_called_that_first() -> None:
    for held_out in (0.001, None):
        sentence = say(0.0502, held_out, 0.48)
        assert "just above 5 %, and at most 5 %" in sentence
        assert sentence.startswith("The network does not fit")
        assert "draws" not in sentence and "in place" not in sentence
        assert ("on held-out" in sentence) == (held_out is not None)


def test_of_several_images_the_mean_is_fitted() -> None:
    """The blank image has an error of 0.2; the mean image, 0.18."""
    scores = {"mse": 0.1802, "relative_mse": 0.901, "floor_mse": 0.18}
    blank = scores | {"mse": 0.2, "relative_mse": 1.0}
    sentence = describe_scores({"id": scores, "ood": blank})
    assert "above floor_mse 1 %) and fails" in sentence and "(100" in sentence
    assert "does not fit" in describe_scores({"id": blank, "ood": scores})


def test_missing_numbers_are_no_errors() -> None:
    for error in (None, math.nan):
        assert "not a number" in say(error, 0.5)
        assert "OOD error is unknown" in say(0.01, error)
        assert "position" not in say(0.01, 0.7, error)


def test_claims_that_the_scores_do_not_carry() -> None:
    """A smear in place, values that training hides, examples of few."""
    smear = {"relative_mse": 0.7, "position_accuracy": 0.64, "hit_rate": 0.4}
    assert "; 10 of 25 held-out positions" in say(0.01, 0.7, ood=smear)
    hidden = say(0.01, 0.7, coverage=COVERED | {"values": 0.875})
    assert "87.5% of the values" in hidden
    few = say(0.02, 0.7, id_test={"relative_mse": 0.9})
    assert "like those that it saw" in few
    whole = say(0.01, None, points={"id": 144, "ood": 0})
    assert "nothing was held out" in whole
    old = {"id": {"relative_mse": 0.01}, "ood": smear | {"hit_rate": None}}
    assert "; 64 % of the held-out positions" in describe_scores(old)
    assert "2.5e+59 %" in say(2.5e57, 2.5e57)
    copies = {"num_copies": 24, "num_held_out": 25}
    copied = say(0.01, 0.02, copies=copies)
    assert "; training contains 24 of their 25 images" in copied


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.1, "less than the best sum of effects of single factors (30 %) and"),
        (0.4, "less than the nearest training image (70 %), but not less than"),
        (0.7, "is not less than the best sum"),
    ],
)
def test_a_network_beside_predictors(error: float, said: str) -> None:
    others = {"additive": {"ood": 0.3}, "nearest_id": {"ood": 0.7}}
    run = {"ood": {"relative_mse": error}, "references": others}
    assert said in describe_references(run)
    assert describe_references(run | {"references": {}}) == ""
    others |= {"without_x": {"ood": 0.2}, "modulo_y": {"ood": 0.05}}
    sentence = describe_references(run)  # the best one that ignores a factor
    assert "equal values of y merged (5 %)" in sentence
    assert "20 %" not in sentence
