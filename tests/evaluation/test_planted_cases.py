"""The table of planted cases: what each measure gave, and must give.

Every case is an output, a stage or a split whose answer is known, in which the
measure said something else than was the case. `before` is what it gave then.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import pytest

from tests.analysis.planted import hold_out, make_bumps, make_grid
from tfcomp.analysis import scores
from tfcomp.analysis.geometry import (
    compute_chance,
    compute_cosine_factorization,
    compute_factorization,
    compute_log_volume,
    compute_pair_scores,
    find_floored,
)
from tfcomp.analysis.kernel_anova import compute_interaction_r2
from tfcomp.analysis.sharing import (
    compute_sharing,
    find_faint,
    summarize_sharing,
)
from tfcomp.analysis.tuning import compute_tuning, summarize_tuning
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.solvable import measure_coverage
from tfcomp.evaluation import geometry_metrics, stage_metrics

GRID = make_grid(14, 14)
IS_OOD = hold_out(GRID, 2, 11)
BUMPS = make_bumps(GRID, 14)
POSITIONS = GRID[IS_OOD].astype(int)
NOISE = np.random.default_rng(0).normal(size=BUMPS.shape)


def cover(*flags: str) -> dict[str, float]:
    return measure_coverage(make_dataset(parse_config(list(flags))))


def score(images: np.ndarray) -> dict[str, float | None]:
    truth = BUMPS[IS_OOD]
    each = scores.score_images(images[IS_OOD], truth, POSITIONS, "bright")
    return scores.average_scores(each)


def count_several(images: np.ndarray) -> float:
    counts = scores.count_own_peaks(images[IS_OOD], "bright")
    return float(np.mean(counts > 1))


def make_metric(jacobian: np.ndarray, points: int = 50) -> np.ndarray:
    return np.tile(jacobian.T @ jacobian, (points, 1, 1))


def make_random_metrics(units: int) -> np.ndarray:
    jacobians = np.random.default_rng(0).normal(size=(400, units, 2))
    return np.einsum("nui,nuj->nij", jacobians, jacobians)


def share(outputs: np.ndarray) -> dict[str, float | None]:
    """Of OOD outputs in place of true ones; distances are all far."""
    shown = np.where(IS_OOD[:, None, None], outputs, BUMPS)
    r2 = compute_sharing(GRID, shown, IS_OOD)
    far = np.full(IS_OOD.sum(), 9.0)
    return summarize_sharing(r2, far, find_faint(shown, IS_OOD))


def make_memories(brightness: float) -> np.ndarray:
    """A known bump with this x plus one with this y."""
    known = {tuple(point): i for i, point in enumerate(GRID.astype(int))}
    drawn = BUMPS.copy()
    for i, (x, y) in enumerate(GRID.astype(int)):
        drawn[i] = brightness * (BUMPS[known[x, 0]] + BUMPS[known[0, y]])
    return drawn


COLLINEAR = make_metric(np.array([[100.0, 1.0]]))
# Of ten factors, the last two move the same unit.
MERGED = make_metric(np.eye(10)[:9, [*range(9), 8]])
DEAD = make_metric(np.eye(2), 289)
DEAD[:3] = 0.0


class Case(NamedTuple):
    """A planted case of a measure."""

    case: str
    measure: str
    compute: Callable[[], float | None]
    before: float | None
    after: float | None


MONTERO = ("--dataset=sprites", "--model=mlp", "--region=montero:range")
CASES = [
    Case(
        "a sample of the grid, half of it OOD",
        "coverage of combinations",
        lambda: cover(*MONTERO, "--eval_points=256")["combinations"],
        0.5,
        5 / 6,
    ),
    Case(
        "square:6-22 of the donut",
        "coverage of pixels",
        lambda: cover("--flagfile=donut.flags")["pixels"],
        0.846,
        0.713,
    ),
    Case(
        "corner:14 of the donut",
        "coverage of pixels",
        lambda: cover("--flagfile=corner.flags")["pixels"],
        0.846,
        0.78,
    ),
    Case(
        "bumps of height 1e-9",
        "position_accuracy, as published",
        lambda: score(1e-9 * BUMPS)["position_accuracy"],
        1.0,
        1.0,
    ),
    Case(
        "bumps of height 1e-9",
        "hit_rate",
        lambda: score(1e-9 * BUMPS)["hit_rate"],
        None,
        0.0,
    ),
    Case("true bumps", "hit_rate", lambda: score(BUMPS)["hit_rate"], None, 1.0),
    Case(
        "blank images",
        "multiple_peaks_ood",
        lambda: count_several(0 * BUMPS),
        0.0,
        0.0,
    ),
    Case(
        "blank images with noise of .0005",
        "multiple_peaks_ood",
        lambda: count_several(0.0005 * NOISE),
        1.0,
        0.0,
    ),
    Case(
        "ripple of .01",
        "multiple_peaks_ood",
        lambda: count_several(0.01 * np.sin(np.arange(14)) + 0 * BUMPS),
        1.0,
        0.0,
    ),
    Case(
        "a superposition at half of the height",
        "multiple_peaks_ood",
        lambda: count_several(make_memories(0.5)),
        1.0,
        1.0,
    ),
    Case(
        "collinear directions of length 100 and 1",
        "factorization",
        lambda: compute_factorization(COLLINEAR).mean(),
        0.990,
        0.990,
    ),
    Case(
        "collinear directions of length 100 and 1",
        "cosine form, the worst pair",
        lambda: compute_pair_scores(COLLINEAR)[0, 1],
        None,
        0.0,
    ),
    Case(
        "random directions of 20 units, less chance",
        "cosine form",
        lambda: (
            compute_cosine_factorization(make_random_metrics(20)).mean()
            - compute_chance(20)
        ),
        None,
        0.0,
    ),
    Case(
        "random directions of 2000 units, less chance",
        "cosine form",
        lambda: (
            compute_cosine_factorization(make_random_metrics(2000)).mean()
            - compute_chance(2000)
        ),
        None,
        0.0,
    ),
    Case(
        "ten factors, two of them merged",
        "factorization",
        lambda: compute_factorization(MERGED).mean(),
        0.989,
        0.989,
    ),
    Case(
        "ten factors, two of them merged",
        "worst_pair_factorization",
        lambda: min(compute_pair_scores(MERGED).values()),
        None,
        0.0,
    ),
    Case(
        "three dead points of 289",
        "mean log-volume",
        lambda: compute_log_volume(DEAD).mean(),
        -0.287,
        -0.287,
    ),
    Case(
        "three dead points of 289",
        "median log-volume",
        lambda: float(np.median(compute_log_volume(DEAD))),
        None,
        0.0,
    ),
    Case(
        "three dead points of 289",
        "floor_fraction",
        lambda: find_floored(DEAD).mean(),
        None,
        3 / 289,
    ),
    Case(
        "sums of two memories",
        "sharing_far_r2",
        lambda: share(make_memories(1.0))["sharing_far_r2"],
        1.0,
        1.0,
    ),
    Case(
        "the same, .002 as bright",
        "sharing_far_r2",
        lambda: share(make_memories(0.002))["sharing_far_r2"],
        1.0,
        None,
    ),
    Case(
        "the same, .002 as bright",
        "faint_far_share",
        lambda: share(make_memories(0.002))["faint_far_share"],
        None,
        1.0,
    ),
    Case(
        "a plus at the right place",
        "position_accuracy, as published",
        lambda: score(make_pluses())["position_accuracy"],
        1.0,
        1.0,
    ),
    Case(
        "a plus at the right place",
        "hit_rate",
        lambda: score(make_pluses())["hit_rate"],
        None,
        0.0,
    ),
    Case(
        "a plus at the right place",
        "interaction_r2_ood",
        lambda: compute_interaction_r2(make_pluses(), BUMPS),
        None,
        0.0,
    ),
    Case(
        "products of width 2",
        "product_less_sum",
        lambda: sort_units(np.multiply.outer)["product_less_sum"],
        None,
        1.0,
    ),
    Case(
        "sums of width 2",
        "product_less_sum",
        lambda: sort_units(np.add.outer)["product_less_sum"],
        None,
        -1.0,
    ),
]


def make_pluses() -> np.ndarray:
    lines = [np.add.outer(b.max(axis=1), b.max(axis=0)) for b in BUMPS]
    return np.stack(lines)


def sort_units(combine: Callable) -> dict[str, float | None]:
    """A unit of width 2, and noise of its size."""
    profile = np.exp(-0.5 * ((np.arange(14) - 7) / 2) ** 2)
    units = [combine(profile, profile), NOISE[0]]
    columns = np.stack([unit.ravel() for unit in units], axis=1)
    return summarize_tuning(compute_tuning(columns, (14, 14)))


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.measure}: {case.case}"
)
def test_planted_case(case: Case) -> None:
    assert case.compute() == pytest.approx(case.after, abs=0.02)


def test_stages_that_are_nearly_linear_or_turned(make_study) -> None:
    """`mixed_share` was 1 and `relative_contrast` said nothing of axes."""
    turn = math.sqrt(0.5)
    study = make_study(
        "truth",
        stage_0=lambda f: keras.ops.stack(
            [f[:, 0] + f[:, 1] + 1e-5 * f[:, 0] * f[:, 1]], axis=1
        ),
        stage_1=lambda f: keras.ops.stack(
            [turn * (f[:, 0] - f[:, 1]), turn * (f[:, 0] + f[:, 1])], axis=1
        ),
        stage_2=lambda f: keras.ops.relu(f + 1),
    )
    found = stage_metrics.compute_interaction(study)
    nearly, turned, kinked = (
        study.stages.index(f"stage_{i}") for i in range(3)
    )
    assert found["mixed_share"][nearly] < 1e-6
    assert found["mixed_share"][turned] == found["mixed_share"][kinked] == 0
    # A rotation of the units changes it, as its description says.
    assert found["relative_contrast"][turned] == pytest.approx(1)
    assert found["relative_contrast"][kinked] == 0


def test_factors_in_other_units(make_study) -> None:
    """Equation 7 of a stage with one factor counted in hundredths."""
    study = make_study(
        "truth", stage_0=lambda f: keras.ops.stack([f @ [[100.0], [1.0]]], 1)
    )
    found = geometry_metrics.compute_orthogonality(study)
    stage = study.stages.index("stage_0")
    assert found["factorization"][stage] > 0.98
    assert found["worst_pair_factorization"][stage] == pytest.approx(0)
    assert found["chance_factorization"][stage] == pytest.approx(0)
    image = study.stages.index("image")
    assert found["chance_factorization"][image] > 0.9


def test_a_sum_is_no_test_of_sharing(make_study) -> None:
    """Images of two bars are sums of those that share one, and say so."""

    study = make_study("truth")
    assert study.truth_sharing < 0.3
    grid = study.splits.grid.astype(int)
    bars = np.zeros((len(grid), 16, 16))
    bars[np.arange(len(grid)), :, grid[:, 0]] += 1
    bars[np.arange(len(grid)), grid[:, 1], :] += 1
    planted = make_study("truth")
    vars(planted)["bright_truth"] = bars.reshape(len(grid), -1)
    assert planted.truth_sharing > 0.5
