"""Lines of findings on planted numbers: each must be able to say otherwise."""

from collections.abc import Sequence

import pytest

from tfcomp.report.findings import (
    describe_border,
    describe_course,
    describe_gaps,
    describe_kernels,
    describe_ranks,
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
        ((1.0, 0.9, 0.5), "It falls from 1.00 (s0) to 0.50 (s2)."),
        ((0.5, 0.9, 1.0), "It rises from 0.50 (s0) to 1.00 (s2)."),
        ((0.99, 1.0, 1.0), "It is about 1.00 in the first stage and the last."),
        (
            (1.0, 0.1, 0.5),
            "It falls from 1.00 (s0) to 0.50 (s2), and is least in s1 (0.10).",
        ),
        ((None, 1.0, 0.5), "It falls from 1.00 (s1) to 0.50 (s2)."),
        ((0.0, 0.0), "It is about 0.00 in the first stage and the last."),
        ((None, 1.0, None), ""),
    ],
)
def test_course(numbers: Sequence[float | None], said: str) -> None:
    assert describe_course(plant_stages(*numbers), "n", "it") == said


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
        (0.30, 0.02, "can in part be written as sums"),
        (0.05, 0.02, "are no more superpositions than the true images"),
        # Images that overlap explain much of each other, whoever draws them.
        (0.95, 0.94, "can in part be written as sums"),
        (0.90, 0.94, "are no more superpositions than the true images"),
        (None, 0.02, "no held-out output is bright enough"),
    ],
)
def test_superposition(model: float | None, truth: float, said: str) -> None:
    assert said in describe_superposition(plant_scores(model, truth)).lower()


def test_a_high_r2_alone_does_not_say_that_training_made_it() -> None:
    high = describe_superposition(plant_scores(0.61, 0.0))
    assert "shows no memorization" in high and "untrained network" in high
    assert "untrained" not in describe_superposition(plant_scores(0.0, 0.0))


def test_superposition_looks_at_far_points_first() -> None:
    near = plant_scores(0.9, 0.1, points="all")
    assert "0.90" in describe_superposition(near)
    both = near + plant_scores(0.05, 0.01)
    assert "no more" in describe_superposition(both)
    assert "mostly" in describe_superposition(near + plant_scores(None, None))


@pytest.mark.parametrize(
    ("apart", "joint", "said"),
    [
        (0.8, 0.3, "resemble the factorized kernel more"),
        (0.3, 0.8, "resemble the conjunctive kernel more"),
        (0.52, 0.5, "resemble both ideal kernels alike"),
        (0.01, -0.2, "resemble neither"),
        (None, 0.3, ""),
    ],
)
def test_kernels(apart: float | None, joint: float, said: str) -> None:
    row = {"run": "a", "factorized": apart, "conjunctive": joint}
    rival = {"run": "a", "similarity": "L2", "factorized": 1, "conjunctive": 0}
    found = describe_kernels([rival, row | {"similarity": "cosine"}])
    assert said in found and bool(said) == bool(found)


@pytest.mark.parametrize(
    ("output", "truth", "said"),
    [
        (0.9, 0.4, "more a linear combination of the edge images than"),
        (0.4, 0.9, "less a linear combination of the edge images than"),
        (0.52, 0.5, "as much a linear combination of the edge images as"),
        (None, 0.5, ""),
    ],
)
def test_gaps(output: float | None, truth: float, said: str) -> None:
    row = {"run": "a", "interpolation_r2": output, "truth_r2": truth}
    found = describe_gaps([row])
    assert said in found and bool(said) == bool(found)


@pytest.mark.parametrize(
    ("rho", "said"),
    [
        (0.8, "rises with"),
        (-0.8, "falls with"),
        (0.2, "hardly depends on"),
        (-0.2, "hardly depends on"),
        (None, ""),
    ],
)
def test_border(rho: float | None, said: str) -> None:
    row = {"run": "a", "border_rank_correlation": rho}
    found = describe_border([row])
    assert said in found and bool(said) == bool(found)


def test_ranks() -> None:
    rows = [
        {"run": "a", "factor": "x", "effective_rank": 1.26},
        {"run": "a", "factor": "y", "effective_rank": 3.0},
    ]
    assert describe_ranks(rows) == "Effective rank of x 1.3, y 3.0."
    assert describe_ranks([]) == ""
