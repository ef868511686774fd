"""Sums of parts: planted embeddings, and slow definitions of the scores."""

import numpy as np
import pytest
from pytest import approx
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from tests.metrics.planted import make_grid
from tfcomp.representations import moments
from tfcomp.representations.additivity import Additivity, measure_additivity

SIZES = (5, 6, 4)
INDEX = make_grid(*SIZES).astype(int)
IS_OOD = (INDEX[:, 0] >= 3) & (INDEX[:, 1] >= 4)
UNITS = 40
RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(size, UNITS)) for size in SIZES]
ROTATION = np.linalg.qr(RNG.normal(size=(UNITS, UNITS)))[0]


def look_up(parts: list[np.ndarray]) -> list[np.ndarray]:
    """The part of each factor at all combinations, [n, units] each."""
    return [part[INDEX[:, column]] for column, part in enumerate(parts)]


SUM = np.sum(look_up(PARTS), axis=0)
PRODUCT = np.prod(look_up(PARTS), axis=0)
RANDOM = RNG.normal(size=SUM.shape)
# The share that sums of parts explain by chance.
CHANCE = (sum(SIZES) - 3) / (len(INDEX) - 1)
PAIRS = [(0, 1), (0, 2), (1, 2)]


def measure(values, index=INDEX, is_ood=IS_OOD) -> Additivity:
    return measure_additivity(values, index, SIZES, is_ood)[0]


def predict(
    values: np.ndarray,
    index: np.ndarray,
    is_known: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Least squares on one-hot factors, by scikit-learn."""
    codes = OneHotEncoder(sparse_output=False).fit_transform(index)
    regression = LinearRegression()
    regression.fit(codes[is_known], values[is_known])
    return regression.predict(codes)


def compute_r2(values: np.ndarray, index: np.ndarray) -> float:
    error = np.square(values - predict(values, index)).sum()
    spread = np.square(values - values.mean(axis=0)).sum()
    return 1 - error / spread


@pytest.mark.parametrize("values", (SUM, SUM @ ROTATION + 5, 1e-3 * SUM))
def test_a_sum_of_parts_scores_one(values) -> None:
    additive, chance = measure_additivity(values, INDEX, SIZES, IS_OOD)

    for name in ("", "_marginal", "_whitened", "_probes"):
        assert additive.scores[f"additive_r2{name}"] == approx(1)
        assert chance.scores[f"additive_r2{name}"] < 0.2
    assert additive.scores["composed_ood"] == approx(0, abs=1e-9)
    assert additive.scores["accuracy_ood"] == 1
    assert sum(row["share"] for row in additive.parts) == approx(1)
    for size, row in zip(SIZES, additive.parts, strict=True):
        assert size - 2 < row["rank"] <= size - 1


@pytest.mark.parametrize("values", (PRODUCT, RANDOM))
def test_products_and_random_tables_score_at_chance(values) -> None:
    scores = measure(values).scores

    assert scores["additive_r2"] == approx(CHANCE, abs=0.02)
    assert scores["composed_ood"] > 1
    assert scores["accuracy_ood"] < 0.4


def test_a_sum_and_noise() -> None:
    """The noise has as much variance as the sum."""
    scale = np.sqrt(SUM.var(axis=0).sum() / RANDOM.var(axis=0).sum())

    scores = measure(SUM + scale * RANDOM).scores

    r2 = scores["additive_r2"]
    assert r2 == approx((1 + CHANCE) / 2, abs=0.02)
    assert scores["additive_r2_whitened"] < r2 < scores["additive_r2_probes"]
    assert 0.4 < scores["composed_ood"] < 0.8


@pytest.mark.parametrize(
    ("directions", "cosine", "angle"),
    [
        (ROTATION[[0, 0, 0]], 1, 0),
        (ROTATION[[0, 1, 2]], 0, 90),
    ],
    ids=["along", "apart"],
)
def test_correlated_parts_are_told_from_orthogonal_ones(
    directions, cosine, angle, rng
) -> None:
    parts = []
    for size, direction in zip(SIZES, directions, strict=True):
        parts.append(np.outer(rng.normal(size=size), direction))

    pair = measure(np.sum(look_up(parts), axis=0)).pairs[0]

    assert pair["angle"] == approx(angle, abs=1e-3)
    assert pair["cosine"] == approx(cosine, abs=1e-6)


@pytest.mark.parametrize("count", (120, 90))
def test_the_peers_r2_by_scikit_learn(count, rng) -> None:
    rows = rng.permutation(len(INDEX))[:count]
    values = (SUM + PRODUCT + RANDOM)[rows]
    index = INDEX[rows]

    scores = measure(values, index, IS_OOD[rows]).scores

    expected = compute_r2(values, index)
    assert scores["additive_r2"] == approx(expected, abs=1e-6)
    # Whitened: the mean over principal components.
    left, lengths, _ = np.linalg.svd(values - values.mean(axis=0), False)
    axes = left[:, lengths > 1e-6 * lengths[0]]
    r2 = [compute_r2(axis[:, None], index) for axis in axes.T]
    assert scores["additive_r2_whitened"] == approx(np.mean(r2), abs=1e-6)


def test_the_chance_level_is_a_mean_over_permutations() -> None:
    """One permutation has a share of 0.01 more or less."""
    _, chance = measure_additivity(SUM + RANDOM, INDEX, SIZES, IS_OOD)

    assert chance.scores["additive_r2"] == approx(CHANCE, abs=0.004)
    shares = [row["share"] for row in chance.parts]
    expected = [(size - 1) / (len(INDEX) - 1) for size in SIZES]
    assert shares == approx(expected, abs=0.006)


def average_values(
    values: np.ndarray,
    index: np.ndarray,
) -> list[np.ndarray]:
    """The mean over rows of each value, less the mean of all, by factor."""
    centered = values - values.mean(axis=0)
    means = []
    for column in index.T:
        rows = [centered[column == label] for label in np.unique(column)]
        means.append(np.array([row.mean(axis=0) for row in rows]))
    return means


@pytest.mark.parametrize("is_complete", [True, False])
def test_marginal_means_by_the_definitions_of_the_peers(is_complete) -> None:
    """Values of two factors go together if the grid is not complete."""
    is_kept = is_complete | (np.abs(INDEX[:, 0] - INDEX[:, 1]) <= 2)
    values = (SUM + 0.5 * RANDOM)[is_kept]
    index = INDEX[is_kept]

    measured = measure(values, index, IS_OOD[is_kept])

    means = average_values(values, index)
    composed = np.zeros_like(values)
    for part, column in zip(means, index.T, strict=True):
        composed += part[column]
    error = np.square(values - values.mean(axis=0) - composed).sum()
    r2 = 1 - error / (values.var(axis=0).sum() * len(values))
    scores = measured.scores
    assert scores["additive_r2_marginal"] == approx(r2)
    gap = scores["additive_r2"] - scores["additive_r2_marginal"]
    if is_complete:
        assert gap == approx(0, abs=1e-9)
    else:
        assert gap > 0.04

    cosines = []
    for (first, second), row in zip(PAIRS, measured.pairs, strict=True):
        for a in means[first]:
            for b in means[second]:
                lengths = np.linalg.norm(a) * np.linalg.norm(b)
                cosines.append(abs(a @ b) / lengths)
        size = len(means[first]) * len(means[second])
        assert row["abs_cosine"] == approx(np.mean(cosines[-size:]))
    assert scores["abs_cosine"] == approx(np.mean(cosines))

    for part, row in zip(means, measured.parts, strict=True):
        squares = np.linalg.svd(part)[1] ** 2
        shares = np.cumsum(squares) / squares.sum()
        assert row["k95"] == 1 + np.sum(shares < 0.95)


def test_values_that_training_lacks_are_not_read() -> None:
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


def test_composition_by_its_definition() -> None:
    values = SUM + 0.5 * PRODUCT

    scores = measure(values).scores

    error = np.square(values - predict(values, INDEX, ~IS_OOD))[IS_OOD].sum()
    mean = values[~IS_OOD].mean(axis=0)
    spread = np.square(values - mean)[IS_OOD].sum()
    assert scores["composed_ood"] == approx(error / spread)


def test_blocks_and_rotations_change_nothing(monkeypatch) -> None:
    values = (SUM + RANDOM).astype(np.float32)
    expected = measure(values).scores

    monkeypatch.setattr(moments, "BLOCK_BYTES", 8 * UNITS * 7)
    assert measure(values).scores == approx(expected, abs=1e-9)

    # More units than rows: the same by the span of the rows.
    wide = measure(np.pad(values, [(0, 0), (0, 260)])).scores
    for name in ("additive_r2", "additive_r2_probes", "composed_ood"):
        assert wide[name] == approx(expected[name], abs=1e-3)

    # As many components as rows: nothing is left to be explained.
    full = measure(RNG.normal(size=(120, 300))).scores
    assert full["additive_r2_whitened"] is None

    # Many units are mixed.
    monkeypatch.setattr(moments, "MAX_UNITS", 100)
    mixed = measure(np.tile(values, (1, 5))).scores
    assert mixed["additive_r2"] == approx(expected["additive_r2"], abs=0.1)


def test_probes_as_by_scikit_learn() -> None:
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


def test_equal_embeddings_have_no_score() -> None:
    additive = measure(np.ones((len(INDEX), 3)))

    assert additive.scores["additive_r2"] is None
    assert additive.scores["composed_ood"] is None
    for name in ("cosine", "abs_cosine"):
        assert {pair[name] for pair in additive.pairs} == {None}
    assert {part["k95"] for part in additive.parts} == {None}
