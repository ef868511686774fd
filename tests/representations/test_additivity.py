"""Sums of parts: planted embeddings, and slow definitions of the scores."""

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from tests.metrics.planted import make_grid
from tfcomp.representations import additivity, moments
from tfcomp.representations.additivity import Additivity, measure_additivity

SIZES = (5, 6, 4)
INDEX = make_grid(*SIZES).astype(int)
IS_OOD = (INDEX[:, 0] >= 3) & (INDEX[:, 1] >= 4)
COUNT = len(INDEX)
UNITS = 40
RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(size, UNITS)) for size in SIZES]
ROTATION = np.linalg.qr(RNG.normal(size=(UNITS, UNITS)))[0]


def look_up(parts: list[np.ndarray]) -> np.ndarray:
    """The part of each factor at all combinations, [F, n, units]."""
    rows = []
    for column, part in enumerate(parts):
        rows.append(part[INDEX[:, column]])
    return np.stack(rows)


SUM = look_up(PARTS).sum(axis=0)
PRODUCT = look_up(PARTS).prod(axis=0)
RANDOM = RNG.normal(size=SUM.shape)
# The share that sums of parts explain by chance.
CHANCE = (sum(SIZES) - 3) / (COUNT - 1)
PAIRS = [(0, 1), (0, 2), (1, 2)]


def measure(values, index=INDEX, is_ood=IS_OOD) -> Additivity:
    """Measures without the chance level, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additivity, "NUM_PERMUTATIONS", 1)
        additive, _ = measure_additivity(values, index, SIZES, is_ood)
    return additive


def predict(
    values: np.ndarray,
    index: np.ndarray,
    is_known: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Least squares on one-hot factors, by scikit-learn."""
    encoder = OneHotEncoder(sparse_output=False)
    codes = encoder.fit_transform(index)
    regression = LinearRegression()
    regression.fit(codes[is_known], values[is_known])
    return regression.predict(codes)


def sum_squares(values: np.ndarray) -> float:
    """The sum of squares about the mean of each unit."""
    centered = values - values.mean(axis=0)
    return np.square(centered).sum()


def compute_r2(values: np.ndarray, index: np.ndarray) -> float:
    rest = values - predict(values, index)
    error = np.square(rest).sum()
    return 1 - error / sum_squares(values)


@pytest.mark.parametrize("values", [SUM, SUM @ ROTATION + 5, 1e-3 * SUM])
def test_a_sum_of_parts_scores_one(values):
    additive, chance = measure_additivity(values, INDEX, SIZES, IS_OOD)

    scores = additive.scores
    for ending in ("", "_marginal", "_whitened", "_probes"):
        name = f"additive_r2{ending}"
        assert scores[name] == approx(1)
        assert chance.scores[name] < 0.2
    assert scores["composed_ood"] == approx(0, abs=1e-9)
    assert scores["accuracy_ood"] == 1
    parts = pd.DataFrame(additive.parts)
    most = np.array(SIZES) - 1
    assert parts["share"].sum() == approx(1)
    assert (parts["rank"] <= most).all()
    assert (parts["rank"] > most - 1).all()


@pytest.mark.parametrize("values", [PRODUCT, RANDOM])
def test_products_and_random_tables_score_at_chance(values):
    scores = measure(values).scores

    assert scores["additive_r2"] == approx(CHANCE, abs=0.02)
    assert scores["composed_ood"] > 1
    assert scores["accuracy_ood"] < 0.4


def test_a_sum_and_noise():
    """The noise has as much variance as the sum."""
    ratio = sum_squares(SUM) / sum_squares(RANDOM)

    scores = measure(SUM + np.sqrt(ratio) * RANDOM).scores

    r2 = scores["additive_r2"]
    expected = (1 + CHANCE) / 2
    assert r2 == approx(expected, abs=0.02)
    assert scores["additive_r2_whitened"] < r2
    assert scores["additive_r2_probes"] > r2
    assert 0.4 < scores["composed_ood"] < 0.8


@pytest.mark.parametrize(
    ("axes", "cosine", "angle"),
    [
        ([0, 0, 0], 1, 0),
        ([0, 1, 2], 0, 90),
    ],
    ids=["along", "apart"],
)
def test_correlated_parts_are_told_from_orthogonal_ones(
    axes,
    cosine,
    angle,
    rng,
):
    parts = []
    for size, axis in zip(SIZES, axes, strict=True):
        heights = rng.normal(size=size)
        parts.append(np.outer(heights, ROTATION[axis]))
    values = look_up(parts).sum(axis=0)

    pair = measure(values).pairs[0]

    assert pair["angle"] == approx(angle, abs=1e-3)
    assert pair["cosine"] == approx(cosine, abs=1e-6)


def test_the_peers_r2_by_scikit_learn(rng):
    rows = rng.permutation(COUNT)[:90]
    values = (SUM + PRODUCT + RANDOM)[rows]
    index = INDEX[rows]

    scores = measure(values, index, IS_OOD[rows]).scores

    expected = compute_r2(values, index)
    assert scores["additive_r2"] == approx(expected, abs=1e-6)
    # Whitened: the mean over principal components.
    centered = values - values.mean(axis=0)
    axes, lengths, _ = np.linalg.svd(centered, full_matrices=False)
    is_axis = lengths > 1e-6 * lengths[0]
    r2 = []
    for axis in axes.T[is_axis]:
        component = axis[:, None]
        r2.append(compute_r2(component, index))
    expected = np.mean(r2)
    assert scores["additive_r2_whitened"] == approx(expected, abs=1e-6)


def test_the_chance_level_is_a_mean_over_permutations():
    """One permutation has a share of 0.01 more or less."""
    _, chance = measure_additivity(
        SUM + RANDOM,
        INDEX,
        SIZES,
        IS_OOD,
    )

    r2 = chance.scores["additive_r2"]
    shares = [row["share"] for row in chance.parts]
    expected = (np.array(SIZES) - 1) / (COUNT - 1)
    assert r2 == approx(CHANCE, abs=0.004)
    assert shares == approx(expected, abs=0.006)


def average_values(
    values: np.ndarray,
    index: np.ndarray,
) -> list[np.ndarray]:
    """The mean over rows of each value, less the mean of all, by factor."""
    centered = values - values.mean(axis=0)
    means = []
    for column in index.T:
        rows = []
        for label in np.unique(column):
            is_label = column == label
            rows.append(centered[is_label].mean(axis=0))
        means.append(np.array(rows))
    return means


def compute_abs_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Absolute cosines between the rows of two arrays."""
    lengths = np.linalg.norm(first, axis=1)
    other_lengths = np.linalg.norm(second, axis=1)
    products = first @ second.T
    return np.abs(products) / np.outer(lengths, other_lengths)


@pytest.mark.parametrize("is_complete", [True, False])
def test_marginal_means_by_the_definitions_of_the_peers(is_complete):
    """Values of two factors go together if the grid is not complete."""
    steps = np.abs(INDEX[:, 0] - INDEX[:, 1])
    is_kept = is_complete | (steps <= 2)
    values = (SUM + 0.5 * RANDOM)[is_kept]
    index = INDEX[is_kept]

    measured = measure(values, index, IS_OOD[is_kept])

    scores = measured.scores
    means = average_values(values, index)
    rest = values - values.mean(axis=0)
    for part, column in zip(means, index.T, strict=True):
        rest -= part[column]
    r2 = 1 - np.square(rest).sum() / sum_squares(values)
    assert scores["additive_r2_marginal"] == approx(r2)
    gap = scores["additive_r2"] - r2
    if is_complete:
        assert gap == approx(0, abs=1e-9)
    else:
        assert gap > 0.04

    cosines = []
    for (first, second), row in zip(PAIRS, measured.pairs, strict=True):
        of_pair = compute_abs_cosines(means[first], means[second])
        cosines.append(of_pair.ravel())
        assert row["abs_cosine"] == approx(of_pair.mean())
    expected = np.concatenate(cosines).mean()
    assert scores["abs_cosine"] == approx(expected)

    for part, row in zip(means, measured.parts, strict=True):
        lengths = np.linalg.svd(part, compute_uv=False)
        squares = lengths**2
        shares = np.cumsum(squares) / squares.sum()
        assert row["k95"] == 1 + np.sum(shares < 0.95)


def test_values_that_training_lacks_are_not_read():
    """One value of the first factor is held out with all of the second."""
    is_last = INDEX[:, 0] == 4

    altogether, chance = measure_additivity(SUM, INDEX, SIZES, is_last)
    in_part = measure(SUM, is_ood=is_last | IS_OOD)

    shares = [row["accuracy_ood"] for row in altogether.parts]
    assert shares == [None, 1, 1]
    assert altogether.scores["accuracy_ood"] == 1
    assert chance.parts[0]["accuracy_ood"] is None
    # Rows with the other values are read.
    assert in_part.parts[0]["accuracy_ood"] == 1
    assert in_part.scores["accuracy_ood"] == 1


def test_composition_by_its_definition():
    values = SUM + 0.5 * PRODUCT

    scores = measure(values).scores

    predicted = predict(values, INDEX, ~IS_OOD)
    rest = values - predicted
    from_mean = values - values[~IS_OOD].mean(axis=0)
    error = np.square(rest[IS_OOD]).sum()
    spread = np.square(from_mean[IS_OOD]).sum()
    assert scores["composed_ood"] == approx(error / spread)


def test_blocks_change_nothing(monkeypatch):
    values = (SUM + RANDOM).astype(np.float32)
    expected = measure(values).scores

    monkeypatch.setattr(moments, "BLOCK_BYTES", 8 * UNITS * 7)
    blocks = measure(values).scores
    assert blocks == approx(expected, abs=1e-9)


def test_more_units_than_rows():
    """The scores are the same by the span of the rows."""
    values = (SUM + RANDOM).astype(np.float32)
    zeros = np.zeros((COUNT, COUNT))
    padded = np.hstack([values, zeros])

    wide = measure(padded).scores

    expected = measure(values).scores
    for name in ("additive_r2", "additive_r2_probes", "composed_ood"):
        assert wide[name] == approx(expected[name], abs=1e-3)


def test_as_many_components_as_rows_explain_everything():
    values = RNG.normal(size=(COUNT, COUNT + 10))

    assert measure(values).scores["additive_r2_whitened"] is None


def test_many_units_are_mixed(monkeypatch):
    values = SUM + RANDOM
    expected = measure(values).scores["additive_r2"]
    tiled = np.tile(values, (1, 5))

    monkeypatch.setattr(moments, "MAX_UNITS", 100)

    mixed = measure(tiled).scores["additive_r2"]
    assert mixed == approx(expected, abs=0.1)


def test_probes_as_by_scikit_learn():
    values = SUM + 2 * RANDOM
    train = moments.split_rows(IS_OOD) == moments.ID

    parts = measure(values).parts

    for size, labels, row in zip(SIZES, INDEX.T, parts, strict=True):
        model = LinearDiscriminantAnalysis(
            solver="lsqr",
            shrinkage=1e-3,
            priors=np.ones(size) / size,
        )
        model.fit(values[train], labels[train])
        expected = model.score(values[IS_OOD], labels[IS_OOD])
        assert row["accuracy_ood"] == approx(expected, abs=0.11)


def test_equal_embeddings_have_no_score():
    additive = measure(np.ones((COUNT, 3)))

    assert additive.scores["additive_r2"] is None
    assert additive.scores["composed_ood"] is None
    for pair in additive.pairs:
        assert pair["cosine"] is None
        assert pair["abs_cosine"] is None
    for part in additive.parts:
        assert part["k95"] is None
