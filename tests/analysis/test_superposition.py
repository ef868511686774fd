"""Superposition scores of planted superposers, composers and copies."""

from __future__ import annotations

import numpy as np
import pytest

from tests.analysis.planted import hold_out
from tests.analysis.planted import make_bumps
from tests.analysis.planted import make_grid
from tfcomp.analysis import superposition as sp

SIZE = 16
GRID = make_grid(SIZE, SIZE)
IS_OOD = hold_out(GRID, 3, 12)
BUMPS = make_bumps(GRID, SIZE)
OOD_ROWS = np.flatnonzero(IS_OOD)


def make_superposed(weight_x: float = 0.7, weight_y: float = 0.4) -> np.ndarray:
    outputs = BUMPS.copy()
    for i in OOD_ROWS:
        shares = (GRID == GRID[i]) & ~IS_OOD[:, None]
        outputs[i] = weight_x * outputs[shares[:, 0]].mean(axis=0)
        outputs[i] += weight_y * outputs[shares[:, 1]].mean(axis=0)
    return outputs


def make_copies() -> np.ndarray:
    outputs = BUMPS.copy()
    known = np.flatnonzero(~IS_OOD)
    for i in OOD_ROWS:
        squares = ((GRID[known] - GRID[i]) ** 2).sum(axis=1)
        is_nearest = squares == squares.min()
        outputs[i] = outputs[known[is_nearest]].mean(axis=0)
    return outputs


def summarize(
    outputs: np.ndarray, min_distance: float = 0.0
) -> dict[str, float | None]:
    scores = sp.compute_superposition(GRID, outputs, IS_OOD)
    return sp.summarize_superposition(scores, min_distance)


def test_a_superposer_scores_one() -> None:
    summary = summarize(make_superposed())
    assert summary["superposition_r2"] == pytest.approx(1)
    assert summary["superposition_span_r2"] == pytest.approx(1)
    assert summary["conjunctive_r2"] < 0.3
    assert summary["conjunctive_span_r2"] < 0.5


def test_a_composer_scores_nothing() -> None:
    summary = summarize(BUMPS)
    assert summary["superposition_r2"] < 0.06
    assert summary["superposition_span_r2"] < 0.35
    far = summarize(BUMPS, min_distance=4)
    for name in sp.PREDICTORS:
        assert far[f"{name}_r2"] < 0.001


def test_a_copier_is_conjunctive() -> None:
    summary = summarize(make_copies())
    assert summary["conjunctive_r2"] == pytest.approx(1)
    assert summary["conjunctive_span_r2"] == pytest.approx(1)
    assert summary["superposition_r2"] < 0.5


def test_unequal_weights_need_the_span() -> None:
    outputs = BUMPS.copy()
    for i in OOD_ROWS:
        x, y = GRID[i].astype(int)
        first, second = x * SIZE + 2, 13 * SIZE + y
        outputs[i] = outputs[first] + outputs[second]
    summary = summarize(outputs)
    assert summary["superposition_span_r2"] == pytest.approx(1)
    assert summary["superposition_r2"] < 0.8


def test_scores_equal_plain_least_squares(rng: np.random.Generator) -> None:
    outputs = BUMPS + 0.1 * rng.normal(size=(len(GRID), SIZE, SIZE))
    scores = sp.compute_superposition(GRID, outputs, IS_OOD)
    flat = outputs.reshape(len(GRID), -1)
    for row in (0, 37, 99):
        i = OOD_ROWS[row]
        means = [
            flat[~IS_OOD & (GRID[:, f] == GRID[i, f])].mean(axis=0)
            for f in (0, 1)
        ]
        design = np.stack(means, axis=1)
        weights = np.linalg.lstsq(design, flat[i], rcond=None)[0]
        error = np.sum((flat[i] - design @ weights) ** 2)
        expected = 1 - error / np.sum(flat[i] ** 2)
        assert scores.r2["superposition"][row] == pytest.approx(expected)


def test_points_are_described() -> None:
    scores = sp.compute_superposition(GRID * [1, 5], BUMPS, IS_OOD)
    assert all(r2.shape == (100,) for r2 in scores.r2.values())
    distance = scores.distance.reshape(10, 10)
    np.testing.assert_array_equal(distance[4], [1, 2, 3, 4, 5, 5, 4, 3, 2, 1])


@pytest.mark.parametrize("scale", [1e-3, 1e-8, 1e8])
def test_scale_of_all_outputs_does_not_matter(scale: float) -> None:
    outputs = make_superposed(0.9, 0.1) + 0.05 * BUMPS
    assert summarize(scale * outputs) == pytest.approx(summarize(outputs))


def test_faint_outputs_count_like_others() -> None:
    outputs = make_superposed()
    outputs[OOD_ROWS[::2]] = BUMPS[OOD_ROWS[::2]]
    expected = summarize(outputs)
    outputs[OOD_ROWS[::2]] *= 1e-2
    faint = summarize(outputs)
    for name in sp.PREDICTORS:
        assert faint[f"{name}_r2"] == pytest.approx(expected[f"{name}_r2"])


def test_nonnegative_spans_do_not_fit_noise(rng: np.random.Generator) -> None:
    outputs = BUMPS.copy()
    outputs[IS_OOD] = rng.normal(size=(100, SIZE, SIZE))
    summary = summarize(outputs)
    assert summary["superposition_r2"] < 0.02
    assert summary["superposition_span_r2"] < 12 / SIZE**2


def test_blank_outputs_have_no_score(rng: np.random.Generator) -> None:
    outputs = make_superposed()
    noise = 1e-7 * rng.normal(size=outputs.shape)
    outputs[OOD_ROWS[:25]] = noise[OOD_ROWS[:25]]
    scores = sp.compute_superposition(GRID, outputs, IS_OOD)
    assert scores.is_blank[:25].all() and not scores.is_blank[25:].any()
    assert np.isnan(scores.r2["superposition"][:25]).all()
    summary = sp.summarize_superposition(scores, 0)
    assert summary["blank_fraction"] == 0.25
    assert summary["superposition_r2"] == pytest.approx(1)
    summary = summarize(np.zeros_like(outputs))
    assert summary["blank_fraction"] == 1
    assert summary["superposition_r2"] is None


def test_blank_id_outputs_explain_nothing() -> None:
    outputs = BUMPS.copy()
    outputs[~IS_OOD] = 0
    summary = summarize(outputs)
    for name in sp.PREDICTORS:
        assert summary[f"{name}_r2"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_outputs_spoil_only_what_uses_them(value: float) -> None:
    outputs = make_superposed()
    outputs[OOD_ROWS[0], 0, 0] = value
    outputs[5 * SIZE + 0] = value  # x = 5, shared by ten OOD points
    r2 = sp.compute_superposition(GRID, outputs, IS_OOD).r2["superposition"]
    is_spoiled = GRID[IS_OOD][:, 0] == 5
    is_spoiled[0] = True
    np.testing.assert_array_equal(np.isnan(r2), is_spoiled)
    summary = summarize(np.full_like(outputs, value))
    assert summary["superposition_r2"] is None
    assert summary["blank_fraction"] == 0


def test_a_gap_leaves_one_shared_factor() -> None:
    """In a gap of x, an OOD point shares no x with any ID point."""
    is_ood = (GRID[:, 0] >= 6) & (GRID[:, 0] <= 9)
    outputs = BUMPS.copy()
    for i in np.flatnonzero(is_ood):
        outputs[i] = outputs[~is_ood & (GRID[:, 1] == GRID[i, 1])].mean(axis=0)
    scores = sp.compute_superposition(GRID, outputs, is_ood)
    np.testing.assert_allclose(scores.r2["superposition"], 1)


def test_points_that_share_nothing_have_no_score() -> None:
    is_ood = ((GRID >= 6) & (GRID <= 9)).any(axis=1)
    scores = sp.compute_superposition(GRID, BUMPS, is_ood)
    shares_nothing = hold_out(GRID, 6, 9)[is_ood]
    for r2 in scores.r2.values():
        np.testing.assert_array_equal(np.isnan(r2), shares_nothing)


def test_three_factors_have_three_means() -> None:
    grid = make_grid(4, 4, 4)
    is_ood = hold_out(grid, 2, 3)
    outputs = np.eye(len(grid))
    for i in np.flatnonzero(is_ood):
        outputs[i] = sum(
            outputs[~is_ood & (grid[:, f] == grid[i, f])].mean(axis=0)
            for f in range(3)
        )
    scores = sp.compute_superposition(grid, outputs, is_ood)
    np.testing.assert_allclose(scores.r2["superposition"], 1)


@pytest.mark.parametrize("all_ood", [True, False])
def test_without_id_or_ood_points_there_is_nothing(all_ood: bool) -> None:
    is_ood = np.full(len(GRID), all_ood)
    scores = sp.compute_superposition(GRID, BUMPS, is_ood)
    summary = sp.summarize_superposition(scores, 0)
    assert summary["superposition_r2"] is None
