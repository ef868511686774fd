"""Superposition scores of planted superposers, composers and copies."""

import numpy as np
import pytest
import scipy.optimize

from tests.metrics import planted
from tests.own_factors import TILES
from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics import superposition as sp

SIZE = 16
GRID = planted.make_grid(SIZE, SIZE)
SPACE = planted.make_space(SIZE, SIZE)
IS_OOD = planted.hold_out(GRID, 3, 12)
BUMPS = planted.make_bumps(GRID, SIZE)
OOD_ROWS = np.flatnonzero(IS_OOD)
SUPERPOSED = planted.superpose(BUMPS, GRID, IS_OOD, {0: 0.7, 1: 0.4})


def compute(
    grid: np.ndarray,
    outputs: np.ndarray,
    is_ood: np.ndarray,
    space: FactorSpace = SPACE,
) -> sp.SuperpositionScores:
    targets = [np.reshape(outputs, (len(grid), -1))[is_ood]]
    (found,) = sp.compute_superposition(grid, outputs, targets, is_ood, space)
    return found


def summarize(
    outputs: np.ndarray, min_distance: float = 0.0, is_ood: np.ndarray = IS_OOD
) -> dict[str, float | None]:
    scores = compute(GRID, outputs, is_ood)
    return sp.summarize_superposition(scores, min_distance)


def test_superposers_copiers_and_composers_are_told_apart() -> None:
    summary = summarize(SUPERPOSED)
    assert summary["superposition_r2"] == pytest.approx(1)
    assert summary["superposition_span_r2"] == pytest.approx(1)
    assert summary["conjunctive_r2"] < 0.3
    assert summary["conjunctive_span_r2"] < 0.5
    summary = summarize(planted.copy_nearest(BUMPS, GRID, IS_OOD))
    assert summary["conjunctive_r2"] == pytest.approx(1)
    assert summary["conjunctive_span_r2"] == pytest.approx(1)
    assert summary["superposition_r2"] < 0.5
    summary = summarize(BUMPS)  # of a composer
    assert summary["superposition_r2"] < 0.06
    assert summary["superposition_span_r2"] < 0.35
    far = summarize(BUMPS, min_distance=4)
    for name in sp.PREDICTORS:
        assert far[f"{name}_r2"] < 0.001


def test_sharers_of_any_factor(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = TILES.grid()
    is_ood = rng.random(len(grid)) < 0.1
    outputs = rng.random((len(grid), 40))
    monkeypatch.setattr(sp, "MAX_POINTS", 7)
    monkeypatch.setattr(sp, "MAX_MEMORIES", 20)
    scores = compute(grid, outputs, is_ood, TILES)
    scored = np.flatnonzero(np.isfinite(scores.r2["superposition"]))
    assert len(scored) == 7
    known = outputs[~is_ood]
    for i in scored:
        row = np.flatnonzero(is_ood)[i]
        shares = grid[~is_ood] == grid[row]  # [n_id, 4]
        means = np.stack([known[column].mean(axis=0) for column in shares.T])
        weights = np.linalg.lstsq(means.T, outputs[row], rcond=None)[0]
        error = np.sum((outputs[row] - weights @ means) ** 2)
        expected = 1 - error / np.sum(outputs[row] ** 2)
        assert scores.r2["superposition"][i] == pytest.approx(expected)
        steps = np.abs(
            TILES.to_index(grid[~is_ood]) - TILES.to_index(grid)[row]
        )
        steps[:, 2] = np.minimum(steps[:, 2], 5 - steps[:, 2])  # it is periodic
        steps[:, 3] = steps[:, 3] > 0  # and that one has no order
        nearest = np.linalg.norm(steps, axis=1).min()
        assert scores.distance[i] == pytest.approx(nearest)


def test_unequal_weights_need_the_span() -> None:
    outputs = BUMPS.copy()
    x, y = GRID[IS_OOD].astype(int).T
    outputs[IS_OOD] = outputs[x * SIZE + 2] + outputs[13 * SIZE + y]
    summary = summarize(outputs)
    assert summary["superposition_span_r2"] == pytest.approx(1)
    assert summary["superposition_r2"] < 0.8


def test_blank_outputs_have_no_score(rng: np.random.Generator) -> None:
    outputs = SUPERPOSED.copy()
    noise = 1e-7 * rng.normal(size=outputs.shape)
    outputs[OOD_ROWS[:25]] = noise[OOD_ROWS[:25]]
    scores = compute(GRID, outputs, IS_OOD)
    assert scores.is_blank[:25].all() and not scores.is_blank[25:].any()
    assert np.isnan(scores.r2["superposition"][:25]).all()
    summary = sp.summarize_superposition(scores, 0)
    assert summary["blank_fraction"] == 0.25
    assert summary["superposition_r2"] == pytest.approx(1)
    summary = summarize(np.zeros_like(outputs))
    assert summary["blank_fraction"] == 1
    assert summary["superposition_r2"] is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_outputs_spoil_only_what_uses_them(value: float) -> None:
    outputs = SUPERPOSED.copy()
    outputs[OOD_ROWS[0], 0, 0] = value
    outputs[5 * SIZE + 0] = value  # x = 5, shared by ten OOD points
    r2 = compute(GRID, outputs, IS_OOD).r2["superposition"]
    is_spoiled = GRID[IS_OOD][:, 0] == 5
    is_spoiled[0] = True
    np.testing.assert_array_equal(np.isnan(r2), is_spoiled)
    summary = summarize(np.full_like(outputs, value))
    assert summary["superposition_r2"] is None
    assert summary["blank_fraction"] == 0


def test_points_that_share_one_factor_alone() -> None:
    """In a gap of x, an OOD point shares no x with any ID point."""
    is_ood = planted.hold_out(GRID[:, :1], 6, 9)
    outputs = planted.superpose(np.eye(len(GRID)), GRID, is_ood, {1: 1.0})
    scores = compute(GRID, outputs, is_ood)
    np.testing.assert_allclose(scores.r2["superposition"], 1)


def test_images_that_are_superposed(rng: np.random.Generator) -> None:
    """Least squares on the means of what shares a level, less the point."""
    index = np.stack(np.meshgrid(range(4), range(5), indexing="ij"), -1)
    index = index.reshape(-1, 2)
    outputs = rng.uniform(size=(20, 7)).astype("f4")
    is_ood = (index >= 2).all(axis=1)
    outputs[0] = 0
    images, r2 = sp.superpose(index, outputs, is_ood)
    for i, target in enumerate(outputs.astype(float)):
        others = ~is_ood & (np.arange(20) != i)
        masks = [others & (index[:, f] == index[i, f]) for f in range(2)]
        means = np.stack([outputs[m].mean(axis=0) for m in masks], axis=1)
        expected = means @ np.linalg.lstsq(means, target, rcond=None)[0]
        np.testing.assert_allclose(images[i], expected, atol=1e-5)
        error = ((target - expected) ** 2).sum()
        share = 1 - error / (target**2).sum() if i else np.nan
        np.testing.assert_allclose(r2[i], share, atol=1e-5)
    scores = compute(
        index.astype(float), outputs, is_ood, planted.make_space(4, 5)
    )
    np.testing.assert_allclose(
        r2[is_ood], scores.r2["superposition"], atol=1e-6
    )


# Sums with nonnegative weights


def explain(known: np.ndarray, target: np.ndarray) -> float:
    """R^2 by nonnegative least squares of all pixels."""
    error = scipy.optimize.nnls(known.T, target)[1] ** 2
    return 1 - error / (target @ target)


def test_spans_are_those_of_direct_least_squares(
    rng: np.random.Generator,
) -> None:
    # Twice the same output, a blank one, and many more pixels than outputs.
    known = rng.random((12, 300))
    known[3], known[5] = known[8], 0.0
    rows = [0, 3, 5, 8, 11]
    target = rng.random(300)
    expected = pytest.approx(explain(known[rows], target), abs=1e-12)
    assert sp.make_span(known[rows])(target) == expected
    assert sp.make_span(known[[5]])(target) == 0.0
    assert np.isnan(sp.make_span(known[rows])(np.full(300, np.inf)))


@pytest.mark.parametrize("apart", [1.0, 1e-6, 0.0])
def test_outputs_that_hardly_differ(
    rng: np.random.Generator, apart: float
) -> None:
    """On both sides of where inner products are as good as singular."""
    known = rng.random(200) + apart * rng.random((20, 200))
    target = rng.random(200) + known[0]
    found = sp.make_span(known)(target)
    assert found == pytest.approx(explain(known, target), abs=1e-4)
