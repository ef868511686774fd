"""Lines of findings on planted numbers: each must be able to say otherwise."""

from collections.abc import Callable, Sequence

import pytest

from tfcomp.report.gap_section import describe_gaps
from tfcomp.report.part_section import describe_ranks
from tfcomp.report.run_exhibits import (
    describe_border,
    describe_course,
    describe_kernels,
    describe_superposition,
)


def plant_stages(*numbers: float | None, run: str = "a") -> list[dict]:
    return [
        {"run": run, "stage": f"s{i}", "n": number}
        for i, number in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1.0, 0.9, 0.5), "it falls from 1.00 (s0) to 0.50 (s2)."),
        ((0.99, 1.0, 1.0), "it is about 1.00 in s0 and s2."),
        # A blank image has no number: the last stage that has one is another.
        ((1.0, 0.99, None), "it is about 0.99 in s0 and s1."),
        (
            (1.0, 0.1, 0.5),
            "it falls from 1.00 (s0) to 0.50 (s2), and is least in s1 (0.10).",
        ),
        ((None, 1.0, 0.5), "it falls from 1.00 (s1) to 0.50 (s2)."),
        ((None, 1.0, None), ""),
        ((1e-16, -1e-3, 4e-3), "it is about 0.00 in s0 and s2."),
    ],
)
def test_course(numbers: Sequence[float | None], said: str) -> None:
    found = describe_course(plant_stages(*numbers), "n", "it")
    assert found == (said and f"a: {said}")


def test_several_runs_are_named() -> None:
    rows = [r for run in "abcde" for r in plant_stages(1, 2, run=run)]
    said = describe_course(rows, "n", "it")
    assert said.startswith("a: it rises from 1.00 (s0) to 2.00 (s1); b: it")
    assert said.endswith("; and 2 more.") and "d:" not in said


def plant_scores(model: float | None, truth: float | None, **more) -> list:
    row = {"run": "a", "points": "far"} | more
    return [
        row | {"OOD outputs": "model", "superposition": model},
        row | {"OOD outputs": "truth", "superposition": truth},
    ]


@pytest.mark.parametrize(
    ("model", "truth", "said"),
    [
        (0.95, 0.02, "can mostly be written as sums"),
        (0.05, 0.02, "are no more superpositions than the true images"),
        # Images that overlap explain much of each other in any network.
        (0.95, 0.94, "can in part be written as sums"),
        (0.90, 0.94, "are no more superpositions than the true images"),
        (None, 0.02, "no held-out output is bright enough"),
    ],
)
def test_superposition(model: float | None, truth: float, said: str) -> None:
    found = describe_superposition(plant_scores(model, truth))
    assert said in found.lower()
    # A high R² alone does not say that training made it.
    assert ("shows no memorization" in found) == ("sums" in said)


@pytest.mark.parametrize("before", [0.2, 0.88, 0.92, 0.97])
def test_superposition_before_training(before: float) -> None:
    rows = plant_scores(0.95, 0.02)
    untrained = {"OOD outputs": "before training", "superposition": before}
    found = describe_superposition([*rows, rows[0] | untrained])
    assert f"{before:.2f}" in found
    assert ("shows no memorization" in found) == (before > 0.9)


def test_superposition_looks_at_far_points_first() -> None:
    near = plant_scores(0.9, 0.1, points="all")
    assert "no more" in describe_superposition(near + plant_scores(0.05, 0.01))
    assert "mostly" in describe_superposition(near + plant_scores(None, None))


def plant_kernels(apart: float | None, joint: float) -> list[dict]:
    row = {"run": "a", "factorized": apart, "conjunctive": joint}
    rival = {"run": "a", "similarity": "L2", "factorized": 1, "conjunctive": 0}
    return [rival, row | {"similarity": "cosine"}]


def plant_gap(output: float | None) -> list[dict]:
    return [{"run": "a", "interpolation_r2": output, "truth_r2": 0.5}]


RANK = {"run": "a", "factor": "x", "effective_rank": 1.26}


def plant_border(rho: float | None) -> list[dict]:
    return [{"run": "a", "border_rank_correlation": rho}]


@pytest.mark.parametrize(
    ("describe", "rows", "said"),
    [
        (describe_kernels, plant_kernels(0.8, 0.3), "the factorized kernel"),
        (describe_kernels, plant_kernels(0.52, 0.5), "both ideal kernels"),
        (describe_kernels, plant_kernels(0.01, -0.2), "neither"),
        (describe_kernels, plant_kernels(None, 0.3), ""),
        (describe_gaps, plant_gap(0.9), "are more a linear combination"),
        (describe_gaps, plant_gap(0.52), "are as much a linear"),
        (describe_gaps, plant_gap(None), ""),
        (describe_border, plant_border(0.8), "rises with"),
        (describe_border, plant_border(-0.2), "hardly depends on"),
        (describe_border, plant_border(None), ""),
        (describe_ranks, [RANK], "x 1.3"),
    ],
)
def test_other_findings(describe: Callable, rows: list, said: str) -> None:
    found = describe(rows)
    assert said in found and bool(said) == bool(found)
