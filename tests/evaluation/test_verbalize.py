"""One sentence on a run, and the cases in which it must not claim anything."""

import math
from typing import Any

import pytest

from tfcomp.evaluation.verbalize import (
    describe_references,
    describe_runs,
    describe_scores,
)

COVERED = {"combinations": 0.8, "values": 1.0, "pixels": 1.0}


def say(
    known: float | None,
    held_out: float | None,
    places: float | None = None,
    **more: Any,
) -> str:
    """The sentence on planted scores of 119 ID and 25 OOD points."""
    scores = {"relative_mse": held_out, "position_accuracy": places}
    metrics = {
        "id": {"relative_mse": known, "position_accuracy": 1.0},
        "ood": scores,
        "coverage": COVERED,
        "points": {"id": 119, "ood": 25},
    }
    return describe_scores(metrics | more)


def test_fits_and_fails() -> None:
    assert say(0.0322, 0.679, 0.12) == (
        "The network fits what it saw (relative error 3.2 %) and fails on "
        "held-out combinations (68 %); 3 of 25 held-out positions are in place."
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.0501, "is worse on"),
        (0.5, "is worse on"),
        (0.05, "draws"),
        (1.05, "fails on"),
    ],
)
def test_the_verdict_is_that_of_the_error(error: float, said: str) -> None:
    """A composer, one that is worse, and one that is worse than blank."""
    sentence = say(0.002, error)
    assert f"and {said} held-out combinations ({100 * error:.0f} %)" in sentence
    others = {"is worse on", "draws", "fails on"} - {said}
    assert not any(other in sentence for other in others)


@pytest.mark.parametrize("error", [0.051, 0.505, 4.66])
@pytest.mark.parametrize("held_out", [0.001, 0.83, None])
def test_a_network_that_fits_nothing_is_called_that_first(
    error: float, held_out: float | None
) -> None:
    sentence = say(error, held_out, 0.48)
    assert sentence.startswith("The network does not fit what it saw: ")
    assert "and fails" not in sentence and "draws" not in sentence
    assert "in place" not in sentence
    assert ("on held-out" in sentence) == (held_out is not None)


@pytest.mark.parametrize("error", [None, math.nan, math.inf])
def test_what_is_not_a_number_is_no_error(error: float | None) -> None:
    assert say(error, 0.5) == (
        "The error of the network on what it saw is not a number."
    )
    assert say(0.01, error).endswith(
        "(relative error 1 %); its OOD error is unknown."
    )


def test_no_region_and_no_positions() -> None:
    points = {"id": 144, "ood": 0}
    assert say(0.01, None, points=points).endswith("; nothing was held out.")
    assert "position" not in say(0.01, 0.7, None)
    assert "position" not in say(0.01, 0.7, math.nan)


def test_a_faint_smear_in_the_right_place_is_no_hit() -> None:
    """The peak of nearly nothing may be where it should be."""
    scores = {"relative_mse": 0.7, "position_accuracy": 0.64, "hit_rate": 0.4}
    assert "; 10 of 25 held-out positions" in say(0.01, 0.7, ood=scores)


def test_a_region_that_hides_values_is_no_test_of_composition() -> None:
    hidden = COVERED | {"values": 0.875}
    sentence = say(0.01, 0.7, coverage=hidden)
    assert "no more than 87.5% of the values" in sentence
    assert "composition" not in say(0.01, 0.7)


def test_images_that_were_not_trained_on_are_not_what_it_saw() -> None:
    """ID scores of few examples are mostly of others (`--num_train`)."""
    few = {"id_test": {"relative_mse": 0.9}}
    for error in (0.02, 0.6):
        sentence = say(error, 0.7, **few)
        assert "like those that it saw" in sentence


def test_a_run_of_earlier_times_has_no_counts() -> None:
    sentence = describe_scores(
        {
            "id": {"relative_mse": 0.01},
            "ood": {"relative_mse": 0.7, "position_accuracy": 0.2628},
        }
    )
    assert sentence.endswith("; 26 % of the held-out positions are in place.")


def plant(known: float | None, held_out: float | None, **others: float) -> dict:
    """Scores of a run, and of predictors that need no network."""
    return {
        "id": {"relative_mse": known},
        "ood": {"relative_mse": held_out},
        "references": {n: {"ood": e, "id": e} for n, e in others.items()},
    }


def test_several_runs_in_a_sentence() -> None:
    runs = {"a": plant(0.01, 0.3), "b": plant(0.2, 0.02), "c": plant(0.01, 1.2)}
    assert describe_runs(runs) == (
        "2 of 3 networks fit what they saw (not b: above 5 %); on held-out "
        "combinations the relative error is least in b (2 %) and largest in c "
        "(120 %)."
    )
    runs = {"a": plant(0.01, None), "b": plant(math.nan, None)}
    assert describe_runs(runs) == (
        "1 of 2 networks fit what they saw (not b: above 5 %)."
    )
    assert describe_runs({"a": plant(0.01, 0.3)}).startswith("The network fits")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.1, "better than that"),
        (0.4, "better than the nearest training image."),
        (0.9, "not better than these"),
        (0.7, "not better than these"),
    ],
)
def test_a_network_beside_what_needs_none(error: float, said: str) -> None:
    runs = {"a": plant(0.01, error, additive=0.3, nearest_id=0.7)}
    sentence = describe_references(runs)
    assert said in sentence
    assert "30 % for the best sum" in sentence and "70 % for" in sentence


def test_several_networks_beside_what_needs_none() -> None:
    others = {"additive": 0.3, "nearest_id": 0.7}
    runs = {n: plant(0.01, e, **others) for n, e in (("a", 0.2), ("b", 0.5))}
    assert describe_references(runs).startswith("1 of 2 networks are better")
    assert describe_references({"a": plant(0.01, 0.2)}) == ""
    assert describe_references({"a": plant(None, None, **others)}) == ""


def test_errors_beyond_words_are_short() -> None:
    sentence = describe_runs({"a": plant(2.5e57, 2.5e57)})
    assert "2.5e+59 %" in sentence and len(sentence) < 300
