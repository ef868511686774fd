"""Planted worlds go through the selection and the two questions."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from reproduction.claims import (
    c01_codes_do_not_compose,
    c04_memories,
    c05_kernel,
    c06_factorization,
    c09_warp,
    c11_forced_rendering,
    c12_penalties,
    c15_bumps,
    c16_data_needed,
    c21_several_bumps,
    c23_effective_rank,
)
from reproduction.claims.judge import ALL, compare, estimate, judge, subtract
from reproduction.claims.networks import (
    ALL_SEEDS,
    CORNER,
    DONUTS,
    LOW_RANK,
    PENALTIES,
    SHORT,
    STRIPES,
)
from tests.reproduction.claims.worlds import plant

BUMP = DONUTS["bump"]
TRAINED = BUMP | {"train_all": True}


def ask(claim: Any, evidence: Any, part: str = "bump") -> tuple[str, str]:
    """The answers of the first row of a part."""
    row = next(row for row in claim.judge(evidence) if row.part == part)
    return row.holds, row.specific.partition(":")[0]


def plant_symptom(
    claim: Any, numbers: Any, control: Any, seeds: Any = None
) -> Any:
    """Networks that fail, and networks trained on all combinations."""
    return plant(
        (BUMP, seeds or claim.SEEDS, numbers), (TRAINED, ALL_SEEDS, control)
    )


BLANK, COMPOSED = {"ood/relative_mse": 1.0}, {"ood/relative_mse": 0.01}
R2 = "sharing_far_r2_centered"
ADDITIVE, RADIAL = "alignment_additive_best", "alignment_radial_best"
FALL = [1.0, 0.99, 0.97, 0.94, 0.9]
INSIDE, OUTSIDE = (f"log_volume_median_deviation_{s}" for s in ("id", "ood"))
NONE = [0.0] * 5
EVEN = {INSIDE: NONE, OUTSIDE: NONE}
PEAKS, BLANKS = "multiple_peaks_ood", "no_peak_ood"


def start(numbers: dict[str, Any]) -> dict[str, Any]:
    """The same numbers, of the untrained network."""
    return {f"start/{name}": value for name, value in numbers.items()}


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
        {INSIDE: NONE, OUTSIDE: [0, 0.2, 0.5, 0.9, 1.4], **start(EVEN)},
        EVEN,
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


@pytest.mark.parametrize(("claim", "numbers", "control", "answers"), SYMPTOMS)
def test_symptoms(claim: Any, numbers: Any, control: Any, answers: Any) -> None:
    assert ask(claim, plant_symptom(claim, numbers, control)) == answers


def test_what_leaves_an_answer_open() -> None:
    claim, numbers = c01_codes_do_not_compose, {"ood/relative_mse": 1.0}
    good = {"ood/relative_mse": 0.01}
    # No control, two seeds, fewer than half fitted, other seeds.
    alone = plant((BUMP, claim.SEEDS, numbers))
    assert ask(claim, alone) == ("yes", "open")
    assert (
        ask(claim, plant_symptom(claim, numbers, good, range(100, 102)))[0]
        == "open"
    )
    unfitted = numbers | {"id/relative_mse": 0.2}
    mixed = plant(
        (BUMP, range(100, 104), numbers), (BUMP, range(104, 120), unfitted)
    )
    assert ask(claim, mixed)[0] == "open"
    assert (
        ask(claim, plant_symptom(claim, numbers, good, range(500, 520)))[0]
        == "open"
    )


def plant_penalties(errors: dict[str, float], **numbers: Any) -> Any:
    """Low-rank networks by the names of their penalties."""
    groups = []
    for name, error in errors.items():
        flags = LOW_RANK | PENALTIES[name] | {"region": CORNER}
        scores = {"ood/relative_mse": error, "ood/mse": error, "id/mse": 1e-3}
        scores |= {"ood/position_accuracy": 1.0, **numbers.get(name, {})}
        groups.append((flags, range(100, 240), scores))
    return plant(*groups)


def test_penalties_that_compose_in_order() -> None:
    errors = {"none": 3.0, "entropy": 1.0, "variance": 0.1, "both": 0.01}
    evidence = plant_penalties(errors)
    assert ask(c11_forced_rendering, evidence, CORNER) == ("yes", "yes")
    rows = {row.part: row for row in c12_penalties.judge(evidence) if row.shown}
    assert {row.holds for row in rows.values()} == {"yes"}
    step = rows["none over entropy"].number.mean
    assert step == pytest.approx(math.log10(3), abs=1e-3)


def test_a_rank_of_one_that_composes_in_no_seed() -> None:
    ranks = {"none": 2.0, "entropy": 1.0, "variance": 1.0, "both": 1.0}
    numbers = {
        name: {f"embeddings/{axis}/effective_rank": rank for axis in "xy"}
        for name, rank in ranks.items()
    }
    errors = {"none": 3.0, "entropy": 1.0, "variance": 0.1, "both": 0.01}
    evidence = plant_penalties(errors, **numbers)
    assert ask(c23_effective_rank, evidence, "none less both")[0] == "yes"
    assert ask(c23_effective_rank, evidence, "entropy alone")[0] == "no"


def test_errors_that_fall_to_that_of_a_blank() -> None:
    errors = {0: 15.0, 10: 9.0, 50: 2.5, 100: 1.0}
    flags = STRIPES | SHORT | {"precision": "float32"}
    evidence = plant(
        *(
            (flags | {"num_bumps": n}, c15_bumps.SEEDS, {"ood/relative_mse": e})
            for n, e in errors.items()
        )
    )
    assert ask(c15_bumps, evidence, "0 to 100 bumps")[0] == "yes"
    assert ask(c15_bumps, evidence, "100 bumps")[0] != "yes"


def test_laws_of_the_data_needed() -> None:
    sizes = np.array([16.0, 20, 24, 32])
    for power in (1, 2, 3):
        errors = c16_data_needed.fit_laws(sizes, 50 + 0.1 * sizes**power)
        best = min(errors, key=errors.__getitem__)
        assert best == f"a+bN^{power}" and errors[best] < 1e-9


def test_intervals_are_those_of_scipy() -> None:
    generator = np.random.default_rng(0)
    first = pd.Series(generator.normal(1, 1, 8), range(8))
    second = pd.Series(generator.normal(0, 2, 5), range(5))
    number = estimate(first, "mean")
    expected = scipy.stats.ttest_1samp(first, 0).confidence_interval()
    assert (number.low, number.high) == pytest.approx(tuple(expected))
    welch = scipy.stats.ttest_ind(first, second, equal_var=False)
    found = subtract(first, second, "mean", is_paired=False)
    expected = welch.confidence_interval()
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    pairs = scipy.stats.ttest_rel(first[:5], second).confidence_interval()
    found = subtract(first, second, "mean", is_paired=True)
    assert (found.low, found.high) == pytest.approx(tuple(pairs))
    shares = estimate(pd.Series([1.0] * 10), "share")
    assert shares.low == pytest.approx(0.05 ** (1 / 10))


def test_a_bound_on_either_side() -> None:
    number = estimate(pd.Series([1.0, 1.1, 0.9]), "mean")
    answers = [
        compare(number, f"{sign} {bound}")
        for sign in "<>"
        for bound in (0, 1, 2)
    ]
    assert answers == ["no", "open", "yes", "yes", "open", "no"]
    row = judge(
        "part",
        "number",
        pd.Series([1.0, 1.1, math.nan]),
        "> 0",
        controls={ALL: pd.Series([0.0])},
    )
    assert (row.holds, row.specific) == ("open", "open")


def test_two_settings_of_a_seed_are_not_mixed() -> None:
    evidence = plant(
        (BUMP, range(3), {}), (BUMP | {"noise": 0.5}, range(3), {})
    )
    with pytest.raises(ValueError, match="several settings"):
        evidence.select(**BUMP)
    assert len(evidence.select(**BUMP, noise=0.5)) == 3
