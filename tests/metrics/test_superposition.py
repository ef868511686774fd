"""Superposition scores of planted superposers, composers and copies."""

import keras
import numpy as np
import pytest
import scipy.optimize
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx

from tests.metrics import planted
from tests.own_factors import TILES
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.splits import Points, Splits
from tfcomp.metrics import superposition as sp
from tfcomp.metrics.output_analysis import predict_superposed_inputs
from tfcomp.models.registry import make_model

SIZE = 16
GRID = planted.make_grid(SIZE, SIZE)
SPACE = planted.make_space(SIZE, SIZE)
IS_OOD = planted.hold_out(GRID, 3, 12)
BUMPS = planted.make_bumps(GRID, SIZE)
OOD_ROWS = np.flatnonzero(IS_OOD)
WEIGHTS = {0: 0.7, 1: 0.4}
SUPERPOSED = planted.superpose(BUMPS, GRID, IS_OOD, WEIGHTS)


def compute(
    outputs: Array,
    is_ood: Array = IS_OOD,
    grid: Array = GRID,
    space: FactorSpace = SPACE,
) -> sp.SuperpositionScores:
    flat = outputs.reshape(len(grid), -1)
    (scores,) = sp.compute_superposition(
        grid,
        outputs,
        [flat[is_ood]],
        is_ood,
        space,
    )
    return scores


def summarize(outputs: Array) -> dict[str, float | None]:
    scores = compute(outputs)
    return sp.summarize_superposition(scores)


def test_superposers_copiers_and_composers_are_told_apart():
    copied = planted.copy_nearest(BUMPS, GRID, IS_OOD)

    superposer = summarize(SUPERPOSED)
    copier = summarize(copied)
    composer = summarize(BUMPS)

    assert superposer["superposition_r2"] == approx(1)
    assert superposer["superposition_span_r2"] == approx(1)
    assert superposer["conjunctive_r2"] < 0.3
    assert superposer["conjunctive_span_r2"] < 0.5

    assert copier["conjunctive_r2"] == approx(1)
    assert copier["conjunctive_span_r2"] == approx(1)
    assert copier["superposition_r2"] < 0.5

    assert composer["superposition_r2"] < 0.06
    assert composer["superposition_span_r2"] < 0.35
    scores = compute(BUMPS)
    is_far = scores.distance >= sp.FAR
    for name in sp.PREDICTORS:
        assert scores.r2[name][is_far].mean() < 0.001


def test_sharers_of_any_factor(rng, monkeypatch):
    monkeypatch.setattr(sp, "MAX_POINTS", 7)
    monkeypatch.setattr(sp, "MAX_MEMORIES", 20)
    index = TILES.to_index(TILES.grid())
    is_ood = rng.random(len(index)) < 0.1
    outputs = rng.random((len(index), 40))

    scores = compute(outputs, is_ood, TILES.grid(), TILES)

    r2 = scores.r2["superposition"]
    scored = np.flatnonzero(np.isfinite(r2))
    assert len(scored) == 7
    memories = outputs[~is_ood]
    known = index[~is_ood]
    for i in scored:
        point = index[is_ood][i]
        output = outputs[is_ood][i]
        means = []
        for shares in (known == point).T:
            mean = memories[shares].mean(axis=0)
            means.append(mean)
        best = planted.explain(np.stack(means), output)
        expected = planted.compute_r2(best, output)
        assert r2[i] == approx(expected)

        x, size, phase, color = np.abs(known - point).T
        around = np.minimum(phase, 5 - phase)
        is_other = color > 0
        steps = np.sqrt(x**2 + size**2 + around**2 + is_other)
        assert scores.distance[i] == approx(steps.min())


def test_unequal_weights_need_the_span():
    outputs = BUMPS.copy()
    for row in OOD_ROWS:
        x, y = divmod(row, SIZE)
        same_x = outputs[x * SIZE + 2]
        same_y = outputs[13 * SIZE + y]
        outputs[row] = same_x + same_y

    summary = summarize(outputs)

    assert summary["superposition_span_r2"] == approx(1)
    assert summary["superposition_r2"] < 0.8


def test_blank_outputs_have_no_score():
    outputs = SUPERPOSED.copy()
    outputs[OOD_ROWS[:25]] *= 1e-7

    scores = compute(outputs)
    summary = summarize(outputs)
    blank = summarize(np.zeros_like(outputs))

    is_blank = np.arange(len(OOD_ROWS)) < 25
    is_lost = np.isnan(scores.r2["superposition"])
    assert_array_equal(scores.is_blank, is_blank)
    assert_array_equal(is_lost, is_blank)
    assert summary["blank_fraction"] == 0.25
    assert summary["superposition_r2"] == approx(1)
    assert blank["blank_fraction"] == 1
    assert blank["superposition_r2"] is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_outputs_spoil_only_what_uses_them(value):
    outputs = SUPERPOSED.copy()
    outputs[OOD_ROWS[0], 0, 0] = value
    outputs[5 * SIZE] = value  # x = 5, shared by ten OOD points

    r2 = compute(outputs).r2["superposition"]
    broken = summarize(np.full_like(outputs, value))

    is_spoiled = GRID[IS_OOD][:, 0] == 5
    is_spoiled[0] = True
    assert_array_equal(np.isnan(r2), is_spoiled)
    assert broken["superposition_r2"] is None
    assert broken["blank_fraction"] == 0


def test_points_that_share_one_factor_alone():
    """In a gap of x, an OOD point shares no x with any ID point."""
    x, _ = GRID.T
    is_ood = (6 <= x) & (x <= 9)
    units = np.eye(len(GRID))
    outputs = planted.superpose(units, GRID, is_ood, weights={1: 1.0})

    scores = compute(outputs, is_ood)

    assert_allclose(scores.r2["superposition"], 1)


def test_images_that_are_superposed(rng):
    """ID points are superposed of all others, OOD points as scored."""
    index = planted.make_grid(4, 5)
    space = planted.make_space(4, 5)
    is_ood = (index >= 2).all(axis=1)
    outputs = rng.uniform(size=(20, 7))
    outputs[0] = 0

    images, r2 = sp.superpose(index, outputs, is_ood)

    assert np.isnan(r2[0])
    for i in range(1, 20):
        expected = planted.compute_r2(images[i], outputs[i])
        assert r2[i] == approx(expected)
    scores = compute(outputs, is_ood, index, space)
    assert_allclose(r2[is_ood], scores.r2["superposition"])


# Sums with nonnegative weights


def explain(known: Array, target: Array) -> float:
    """R^2 by nonnegative least squares of all pixels."""
    _, error = scipy.optimize.nnls(known.T, target)
    return 1 - error**2 / np.sum(target**2)


def test_spans_are_those_of_direct_least_squares(rng):
    # Twice the same output, a blank one, and many more pixels than outputs.
    known = rng.random((5, 300))
    known[1] = known[3]
    known[2] = 0.0
    target = rng.random(300)

    explain_target = sp.make_span(known)
    explain_by_blank = sp.make_span(known[[2]])

    expected = explain(known, target)
    assert explain_target(target) == approx(expected, abs=1e-12)
    assert explain_by_blank(target) == 0.0
    assert np.isnan(explain_target(np.inf * target))


@pytest.mark.parametrize("apart", [1.0, 1e-6, 0.0])
def test_outputs_that_hardly_differ(apart, rng):
    """On both sides of where inner products are as good as singular."""
    differences = rng.random((20, 200))
    known = rng.random(200) + apart * differences
    target = rng.random(200) + known[0]

    r2 = sp.make_span(known)(target)

    expected = explain(known, target)
    assert r2 == approx(expected, abs=1e-4)


# Superposed codes


def make_decoder(skips: bool = False, code: str = "code") -> keras.Model:
    layers = keras.layers
    factors = keras.Input((2,), name="factors")
    hidden = layers.Dense(5, "tanh", name=code)(factors)
    image = layers.Dense(12)(hidden)
    if skips:
        image = image + layers.Dense(12)(factors)
    image = layers.Reshape((3, 4, 1), name="image")(image)
    return keras.Model(factors, image)


CODE_GRID = planted.make_grid(6, 7)
IS_INSIDE = planted.hold_out(CODE_GRID, 2, 3)
CODE_OOD = IS_INSIDE | (CODE_GRID[:, 0] == 5)
NOT_TESTED = np.zeros(42, bool)
SPLITS = Splits(
    CODE_GRID[~CODE_OOD],
    Points(CODE_GRID, CODE_OOD, NOT_TESTED),
    (),
)


def test_a_linear_decoder_superposes_outputs_by_superposed_inputs():
    model = make_decoder()
    outputs = model.predict(CODE_GRID, verbose=0)

    predictions = predict_superposed_inputs(model, SPLITS)

    points = CODE_GRID[CODE_OOD]
    known = CODE_GRID[~CODE_OOD]
    memories = outputs[~CODE_OOD]
    assert predictions.shape == (len(points), 2, 3, 4, 1)
    for (place, factor), value in np.ndenumerate(points):
        image = predictions[place, factor]
        shares = known[:, factor] == value
        if shares.any():
            expected = memories[shares].mean(axis=0)
            assert_allclose(image, expected, atol=1e-5)
        else:  # all of x = 5 is held out
            assert np.isnan(image).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"skips": True},
        {"code": "other"},
    ],
)
def test_decoders_of_other_inputs_superpose_none(changes):
    model = make_decoder(**changes)
    assert predict_superposed_inputs(model, SPLITS) is None


def test_an_index_is_no_code():
    config = parse_config(["--flagfile=low_rank.flags"])
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")

    assert predict_superposed_inputs(model, dataset.splits) is None
