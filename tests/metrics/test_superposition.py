"""Superposition scores of planted superposers, composers and copies."""

import keras
import numpy as np
import pytest
import scipy.optimize
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
from tfcomp.models.stages import make_model

SIZE = 16
GRID = planted.make_grid(SIZE, SIZE)
SPACE = planted.make_space(SIZE, SIZE)
IS_OOD = planted.hold_out(GRID, 3, 12)
BUMPS = planted.make_bumps(GRID, SIZE)
OOD_ROWS = np.flatnonzero(IS_OOD)
SUPERPOSED = planted.superpose(
    BUMPS,
    GRID,
    IS_OOD,
    {
        0: 0.7,
        1: 0.4,
    },
)


def compute(
    outputs: np.ndarray,
    is_ood: np.ndarray = IS_OOD,
    grid: np.ndarray = GRID,
    space: FactorSpace = SPACE,
) -> sp.SuperpositionScores:
    targets = outputs.reshape(len(grid), -1)[is_ood]
    (scores,) = sp.compute_superposition(
        grid,
        outputs,
        [targets],
        is_ood,
        space,
    )
    return scores


def summarize(
    outputs: np.ndarray,
    min_distance: float = 0.0,
) -> dict[str, float | None]:
    return sp.summarize_superposition(compute(outputs), min_distance)


def test_superposers_copiers_and_composers_are_told_apart() -> None:
    summary = summarize(SUPERPOSED)

    assert summary["superposition_r2"] == approx(1)
    assert summary["superposition_span_r2"] == approx(1)
    assert summary["conjunctive_r2"] < 0.3
    assert summary["conjunctive_span_r2"] < 0.5

    summary = summarize(planted.copy_nearest(BUMPS, GRID, IS_OOD))
    assert summary["conjunctive_r2"] == approx(1)
    assert summary["conjunctive_span_r2"] == approx(1)
    assert summary["superposition_r2"] < 0.5

    summary = summarize(BUMPS)  # of a composer
    assert summary["superposition_r2"] < 0.06
    assert summary["superposition_span_r2"] < 0.35

    far = summarize(BUMPS, min_distance=4)
    for name in sp.PREDICTORS:
        assert far[f"{name}_r2"] < 0.001


def test_sharers_of_any_factor(rng, monkeypatch) -> None:
    monkeypatch.setattr(sp, "MAX_POINTS", 7)
    monkeypatch.setattr(sp, "MAX_MEMORIES", 20)
    grid = TILES.grid()
    index = TILES.to_index(grid)
    is_ood = rng.random(len(grid)) < 0.1
    outputs = rng.random((len(grid), 40))
    scores = compute(outputs, is_ood, grid, TILES)
    scored = np.flatnonzero(np.isfinite(scores.r2["superposition"]))
    assert len(scored) == 7
    known = outputs[~is_ood]
    for i in scored:
        row = np.flatnonzero(is_ood)[i]
        shares = grid[~is_ood] == grid[row]  # [n_id, 4]
        means = np.stack([known[column].mean(axis=0) for column in shares.T])
        best = planted.explain(means, outputs[row])
        expected = planted.compute_r2(best, outputs[row])
        assert scores.r2["superposition"][i] == approx(expected)

        steps = np.abs(index[~is_ood] - index[row])
        steps[:, 2] = np.minimum(steps[:, 2], 5 - steps[:, 2])  # it is periodic
        steps[:, 3] = steps[:, 3] > 0  # and that one has no order
        nearest = np.linalg.norm(steps, axis=1).min()
        assert scores.distance[i] == approx(nearest)


def test_unequal_weights_need_the_span() -> None:
    outputs = BUMPS.copy()
    x, y = GRID[IS_OOD].astype(int).T
    outputs[IS_OOD] = outputs[x * SIZE + 2] + outputs[13 * SIZE + y]
    summary = summarize(outputs)

    assert summary["superposition_span_r2"] == approx(1)
    assert summary["superposition_r2"] < 0.8


def test_blank_outputs_have_no_score(rng) -> None:
    outputs = SUPERPOSED.copy()
    blank = OOD_ROWS[:25]
    outputs[blank] = 1e-7 * rng.normal(size=(25, SIZE, SIZE))
    scores = compute(outputs)
    expected = np.arange(len(OOD_ROWS)) < 25
    r2 = scores.r2["superposition"]

    assert_array_equal(scores.is_blank, expected)
    assert_array_equal(np.isnan(r2), expected)

    summary = summarize(outputs)
    assert summary["blank_fraction"] == 0.25
    assert summary["superposition_r2"] == approx(1)

    summary = summarize(np.zeros_like(outputs))
    assert summary["blank_fraction"] == 1
    assert summary["superposition_r2"] is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_outputs_spoil_only_what_uses_them(value) -> None:
    outputs = SUPERPOSED.copy()
    outputs[OOD_ROWS[0], 0, 0] = value
    outputs[5 * SIZE] = value  # x = 5, shared by ten OOD points
    is_spoiled = GRID[IS_OOD][:, 0] == 5
    is_spoiled[0] = True
    r2 = compute(outputs).r2["superposition"]

    assert_array_equal(np.isnan(r2), is_spoiled)

    summary = summarize(np.full_like(outputs, value))
    assert summary["superposition_r2"] is None
    assert summary["blank_fraction"] == 0


def test_points_that_share_one_factor_alone() -> None:
    """In a gap of x, an OOD point shares no x with any ID point."""
    is_ood = planted.hold_out(GRID[:, :1], 6, 9)
    outputs = planted.superpose(np.eye(len(GRID)), GRID, is_ood, {1: 1.0})
    scores = compute(outputs, is_ood)

    assert_allclose(scores.r2["superposition"], 1)


def test_images_that_are_superposed(rng) -> None:
    """ID points are superposed of all others, OOD points as scored."""
    index = planted.make_grid(4, 5)
    outputs = rng.uniform(size=(20, 7))
    outputs[0] = 0
    is_ood = (index >= 2).all(axis=1)

    images, r2 = sp.superpose(index, outputs, is_ood)

    assert np.isnan(r2[0])
    for i in range(1, 20):
        assert r2[i] == approx(planted.compute_r2(images[i], outputs[i]))
    scores = compute(outputs, is_ood, index, planted.make_space(4, 5))
    assert_allclose(r2[is_ood], scores.r2["superposition"])


# Sums with nonnegative weights


def explain(known: np.ndarray, target: np.ndarray) -> float:
    """R^2 by nonnegative least squares of all pixels."""
    error = scipy.optimize.nnls(known.T, target)[1] ** 2
    return 1 - error / (target @ target)


def test_spans_are_those_of_direct_least_squares(rng) -> None:
    # Twice the same output, a blank one, and many more pixels than outputs.
    known = rng.random((5, 300))
    known[1] = known[3]
    known[2] = 0.0
    target = rng.random(300)
    expected = approx(explain(known, target), abs=1e-12)

    assert sp.make_span(known)(target) == expected
    assert sp.make_span(known[[2]])(target) == 0.0
    assert np.isnan(sp.make_span(known)(np.full(300, np.inf)))


@pytest.mark.parametrize("apart", [1.0, 1e-6, 0.0])
def test_outputs_that_hardly_differ(apart, rng) -> None:
    """On both sides of where inner products are as good as singular."""
    known = rng.random(200) + apart * rng.random((20, 200))
    target = rng.random(200) + known[0]
    r2 = sp.make_span(known)(target)

    assert r2 == approx(explain(known, target), abs=1e-4)


# Superposed codes


def make_decoder(skips: bool = False, code: str = "code") -> keras.Model:
    factors = keras.Input((2,), name="factors")
    hidden = keras.layers.Dense(
        5,
        activation="tanh",
        name=code,
    )(factors)
    image = keras.layers.Dense(12)(hidden)
    if skips:
        image = image + keras.layers.Dense(12)(factors)
    image = keras.layers.Reshape((3, 4, 1), name="image")(image)
    return keras.Model(factors, image)


CODE_GRID = planted.make_grid(6, 7)
CODE_OOD = planted.hold_out(CODE_GRID, 2, 3) | (CODE_GRID[:, 0] == 5)
SPLITS = Splits(
    CODE_GRID[~CODE_OOD],
    Points(CODE_GRID, CODE_OOD, np.zeros(42, bool)),
    (),
)


def test_a_linear_decoder_superposes_outputs_by_superposed_inputs() -> None:
    model = make_decoder()
    outputs = model.predict(CODE_GRID, verbose=0)
    predictions = predict_superposed_inputs(model, SPLITS)

    assert predictions.shape == (CODE_OOD.sum(), 2, 3, 4, 1)

    for point, images in zip(CODE_GRID[CODE_OOD], predictions, strict=True):
        shares = ~CODE_OOD[:, None] & (CODE_GRID == point)
        for image, rows in zip(images, shares.T, strict=True):
            if rows.any():
                expected = outputs[rows].mean(axis=0)
                assert_allclose(image, expected, atol=1e-5)
            else:  # all of x = 5 is held out
                assert np.isnan(image).all()


@pytest.mark.parametrize("changes", [{"skips": True}, {"code": "other"}])
def test_decoders_of_other_inputs_superpose_none(changes) -> None:
    assert predict_superposed_inputs(make_decoder(**changes), SPLITS) is None


def test_an_index_is_no_code() -> None:
    config = parse_config(["--flagfile=low_rank.flags"])
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")

    assert predict_superposed_inputs(model, dataset.splits) is None
