"""Planted worlds go through the selection and the two questions."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from pytest import approx

from reproduction.claims import (
    c01_codes_do_not_compose,
    c04_memories,
    c05_kernel,
    c06_factorization,
    c09_warp,
    c11_forced_rendering,
    c12_penalties,
    c15_bumps,
    c21_several_bumps,
    c23_effective_rank,
)
from reproduction.claims.judge import ALL, Row, compare, estimate, subtract
from reproduction.claims.networks import (
    ALL_SEEDS,
    CORNER,
    DONUTS,
    LOW_RANK,
    PENALTIES,
    SHORT,
    STRIPES,
)
from tests.reproduction.claims.worlds import find, plant, start

BUMP = DONUTS["bump"]
TRAINED = BUMP | {"train_all": True}
R2 = "sharing_far_r2_centered"
ADDITIVE = "alignment_additive_best"
RADIAL = "alignment_radial_best"
INSIDE = "log_volume_median_deviation_id"
OUTSIDE = "log_volume_median_deviation_ood"
PEAKS = "multiple_peaks_ood"
BLANKS = "no_peak_ood"
BLANK = {"ood/relative_mse": 1.0}
COMPOSED = {"ood/relative_mse": 0.01}
FALL = [1.0, 0.99, 0.97, 0.94, 0.9]
ZEROS = [0.0] * 5


def ask(claim: Any, evidence: Any, part: str = "bump") -> tuple[str, str]:
    """The answers of the first row of a part."""
    row = find(claim, evidence, part)
    return row.holds, row.specific.partition(":")[0]


def plant_symptom(
    numbers: dict[str, Any],
    control: dict[str, Any],
    seeds: range,
) -> Any:
    """Networks that fail, and networks trained on all combinations."""
    return plant((BUMP, seeds, numbers), (TRAINED, ALL_SEEDS, control))


# What networks that fail have, what networks that were trained on all have, and
# the answers.
SYMPTOMS = [
    (c01_codes_do_not_compose, BLANK, COMPOSED, ("yes", "yes")),
    (c01_codes_do_not_compose, COMPOSED, COMPOSED, ("no", "no")),
    # Superposers, which were none before training, or were.
    (c04_memories, {R2: 0.9, **start({R2: 0.1})}, {R2: 0.01}, ("yes", "yes")),
    (c04_memories, {R2: 0.9, **start({R2: 0.9})}, {R2: 0.01}, ("yes", "no")),
    # Sums of stripes.
    (
        c05_kernel,
        {ADDITIVE: 0.8, RADIAL: 0.5, **start({ADDITIVE: 0.1, RADIAL: 0.1})},
        {ADDITIVE: 0.4, RADIAL: 0.8},
        ("yes", "yes"),
    ),
    # A fall that networks that compose have, too.
    (
        c06_factorization,
        {"factorization": FALL, **start({"factorization": [1.0] * 5})},
        {"factorization": FALL},
        ("yes", "no"),
    ),
    # A fold.
    (
        c09_warp,
        {
            INSIDE: ZEROS,
            OUTSIDE: [0, 0.2, 0.5, 0.9, 1.4],
            **start({INSIDE: ZEROS, OUTSIDE: ZEROS}),
        },
        {INSIDE: ZEROS, OUTSIDE: ZEROS},
        ("yes", "yes"),
    ),
    # Two bumps.
    (
        c21_several_bumps,
        {PEAKS: 0.9, BLANKS: 0.0, **start({PEAKS: 0.0})},
        {PEAKS: 0.0, BLANKS: 0.0},
        ("yes", "yes"),
    ),
]


@pytest.mark.parametrize("claim, numbers, control, answers", SYMPTOMS)
def test_symptoms(
    claim: Any,
    numbers: dict,
    control: dict,
    answers: tuple[str, str],
):
    evidence = plant_symptom(numbers, control, claim.SEEDS)

    assert ask(claim, evidence) == answers


def test_without_a_control_nothing_is_specific():
    claim = c01_codes_do_not_compose

    answers = ask(claim, plant((BUMP, claim.SEEDS, BLANK)))

    assert answers == ("yes", "open")


@pytest.mark.parametrize("seeds", [range(100, 102), range(500, 520)])
def test_two_seeds_and_other_seeds_leave_an_answer_open(seeds: range):
    evidence = plant_symptom(BLANK, COMPOSED, seeds)

    assert ask(c01_codes_do_not_compose, evidence)[0] == "open"


def test_fewer_than_half_fitted_leave_an_answer_open():
    unfitted = BLANK | {"id/relative_mse": 0.2}
    evidence = plant(
        (BUMP, range(100, 104), BLANK),
        (BUMP, range(104, 120), unfitted),
    )

    assert ask(c01_codes_do_not_compose, evidence)[0] == "open"


def plant_penalties(**ranks: float) -> Any:
    """Low-rank networks whose errors fall with their penalties."""
    errors = {"none": 3.0, "entropy": 1.0, "variance": 0.1, "both": 0.01}
    groups = []
    for name, error in errors.items():
        flags = LOW_RANK | PENALTIES[name] | {"region": CORNER}
        scores = {
            "ood/relative_mse": error,
            "ood/mse": error,
            "id/mse": 1e-3,
            "ood/position_accuracy": 1.0,
        }
        if ranks:
            scores["embeddings/x/effective_rank"] = ranks[name]
            scores["embeddings/y/effective_rank"] = ranks[name]
        groups.append((flags, range(100, 240), scores))
    return plant(*groups)


def test_penalties_that_compose_in_order():
    evidence = plant_penalties()

    rows = {row.part: row for row in c12_penalties.judge(evidence) if row.shown}

    assert ask(c11_forced_rendering, evidence, CORNER) == ("yes", "yes")
    assert {row.holds for row in rows.values()} == {"yes"}
    step = rows["none over entropy"].number.mean
    assert step == approx(math.log10(3), abs=1e-3)


def test_a_rank_of_one_that_composes_in_no_seed():
    evidence = plant_penalties(none=2.0, entropy=1.0, variance=1.0, both=1.0)

    assert ask(c23_effective_rank, evidence, "none less both")[0] == "yes"
    assert ask(c23_effective_rank, evidence, "entropy alone")[0] == "no"


def test_errors_that_fall_to_that_of_a_blank():
    groups = []
    for count, error in {0: 15.0, 10: 9.0, 50: 2.5, 100: 1.0}.items():
        flags = STRIPES | SHORT | {"precision": "float32", "num_bumps": count}
        groups.append((flags, c15_bumps.SEEDS, {"ood/relative_mse": error}))

    evidence = plant(*groups)

    assert ask(c15_bumps, evidence, "0 to 100 bumps")[0] == "yes"
    assert ask(c15_bumps, evidence, "100 bumps")[0] != "yes"


def test_differences_of_other_seeds_have_intervals_of_welch(
    rng: np.random.Generator,
):
    first = pd.Series(rng.normal(1, 1, 8))
    second = pd.Series(rng.normal(0, 2, 5))
    test = scipy.stats.ttest_ind(first, second, equal_var=False)

    difference = subtract(first, second, "mean", is_paired=False)

    low, high = test.confidence_interval()
    assert difference.low == approx(low)
    assert difference.high == approx(high)


@pytest.mark.parametrize(
    "bound, answer",
    [
        ("< 0", "no"),
        ("< 1", "open"),
        ("< 2", "yes"),
        ("> 0", "yes"),
        ("> 1", "open"),
        ("> 2", "no"),
    ],
)
def test_a_bound_on_either_side(bound: str, answer: str):
    number = estimate(pd.Series([1.0, 1.1, 0.9]), "mean")

    assert compare(number, bound) == answer


def test_a_missing_number_leaves_an_answer_open():
    row = Row(
        part="part",
        quantity="number",
        values=pd.Series([1.0, 1.1, math.nan]),
        bound="> 0",
        others={ALL: pd.Series([0.0])},
    )

    assert row.holds == "open"
    assert row.specific == "open"


def test_two_settings_of_a_seed_are_not_mixed():
    noisy = BUMP | {"noise": 0.5}

    evidence = plant((BUMP, range(3), {}), (noisy, range(3), {}))

    with pytest.raises(ValueError):
        evidence.select(**BUMP)
    assert evidence.select(**noisy).tried == 3
