"""What the numbers about images say of planted outputs (C4, C5, C21)."""

import dataclasses
import functools

import numpy as np
import pytest

from tests.analysis import planted_donut as donut
from tfcomp.analysis.kernels import (
    compute_cosine_gram,
    summarize_best_alignment,
)
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.analysis.sharing import compute_sharing, summarize_sharing
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.all_claims import CLAIMS
from tfcomp.studies.claims.controls import Control, Kind


@functools.cache
def summarize(name: str) -> dict[str, float | None]:
    outputs = donut.plant(name)
    r2 = compute_sharing(donut.GRID, outputs, donut.IS_OOD, donut.SPACE)
    return summarize_sharing(r2, donut.DISTANCE)


def judge(name: str, numbers: dict[str, float | None]) -> Verdict:
    """The verdict on networks with these numbers, as if it were new."""
    (claim,) = (c for c in CLAIMS if c.name == name)
    start = {f"start/{name}": 0.0 for name in numbers if "sharing" in name}
    # What the outputs of networks that fail have besides.
    start["ood/position_accuracy"] = 0.3
    runs = {"donuts": numbers | start}
    planted = Control("outputs", Kind.POSITIVE, runs)
    claim = dataclasses.replace(claim, controls=(), history=())
    return claim.judge(planted.plant()).verdict


def superposes(numbers: dict[str, float | None]) -> bool:
    """Whether C4 is reproduced."""
    return judge("C4", numbers) is Verdict.REPRODUCED


@pytest.mark.parametrize("name", donut.SUPERPOSERS)
def test_superposers_are_recognized(name: str) -> None:
    numbers = summarize(name)
    assert superposes(numbers)
    blurred = name == "blurred means"
    expected = pytest.approx(0.93, abs=0.01) if blurred else pytest.approx(1)
    assert numbers["sharing_far_r2"] == expected
    assert numbers["sharing_near_r2"] == expected
    assert -0.3 < numbers["rival_far_r2"] < 0


@pytest.mark.parametrize(
    "name", [*donut.COMPOSERS, *donut.MEMORIES, *donut.NOISE]
)
def test_whatever_else_is_not(name: str) -> None:
    numbers = summarize(name)
    assert not superposes(numbers)
    if name == "nearest memory":  # shares one factor
        assert numbers["sharing_far_r2"] == pytest.approx(1)
        assert numbers["single_far_r2"] == pytest.approx(1)
    else:
        assert numbers["sharing_far_r2"] < 0.2


def align(name: str) -> dict[str, float | None]:
    gram = compute_cosine_gram(donut.plant(name))
    return summarize_best_alignment(gram, donut.GRID, donut.IS_OOD)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("means", 0.2, 0.3),
        ("random weights", 0.2, 0.3),
        ("blurred means", 0.1, 0.3),
        ("composer 1", -0.4, -0.3),
        ("composer 1.5", -0.3, -0.2),
        ("composer 2", -0.25, -0.15),
        ("composer 3", -0.15, -0.1),
        # Not of all that share a factor: no control of this number.
        ("nearest of each", -0.2, 0.0),
        ("random memory", -0.6, -0.2),
        ("noise", -0.8, -0.4),
    ],
)
def test_sums_of_stripes_have_an_additive_kernel(
    name: str, low: float, high: float
) -> None:
    numbers = align(name)
    additive = numbers["alignment_additive_best"]
    assert low < additive - numbers["alignment_radial_best"] < high
    verdict = Verdict.REPRODUCED if low > 0 else Verdict.REFUTED
    assert judge("C5", numbers) is verdict


@pytest.mark.parametrize("width", [1, 1.5, 2, 3])
def test_the_kernel_of_a_composer_is_radial(width: float) -> None:
    numbers = align(f"composer {width}")
    assert numbers["alignment_radial_best"] == pytest.approx(1, abs=1e-3)
    assert numbers["alignment_radial_width"] == width


def share_with_two_peaks(name: str, rows: np.ndarray) -> float:
    return np.mean(count_own_peaks(donut.plant(name)[rows], "bright") > 1)


@pytest.mark.parametrize("name", donut.SUPERPOSERS)
def test_superpositions_have_several_peaks(name: str) -> None:
    share = share_with_two_peaks(name, donut.IS_OOD)
    assert share > 0.9
    assert (
        judge("C21", {"multiple_peaks_ood": share, "no_peak_ood": 0.0})
        is Verdict.REPRODUCED
    )
    assert share_with_two_peaks(name, ~donut.IS_OOD) == 0


@pytest.mark.parametrize("name", [*donut.COMPOSERS, "nearest memory"])
def test_bumps_of_any_width_have_one_peak(name: str) -> None:
    share = share_with_two_peaks(name, donut.IS_OOD)
    assert share == 0
    assert (
        judge("C21", {"multiple_peaks_ood": share, "no_peak_ood": 0.0})
        is Verdict.REFUTED
    )
