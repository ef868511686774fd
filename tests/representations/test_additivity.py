"""Sums of parts: planted embeddings, and slow definitions of the scores."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from tests.metrics.planted import make_grid
from tfcomp.representations import additivity
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
CHANCE = sum(size - 1 for size in SIZES) / (len(INDEX) - 1)


def measure(
    values: np.ndarray,
    index: np.ndarray = INDEX,
    is_ood: np.ndarray = IS_OOD,
) -> Additivity:
    return measure_additivity(
        values,
        index,
        SIZES,
        is_ood,
    )[0]


def score(values: np.ndarray) -> dict[str, float | None]:
    return measure(values).scores


def predict(
    values: np.ndarray,
    index: np.ndarray,
    known: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Least squares on one-hot factors, by scikit-learn."""
    codes = OneHotEncoder(sparse_output=False).fit_transform(index)
    return LinearRegression().fit(codes[known], values[known]).predict(codes)


def compute_r2(
    values: np.ndarray,
    index: np.ndarray,
) -> float:
    rest = values - predict(values, index)
    return 1 - np.square(rest).sum() / np.square(values - values.mean(0)).sum()


@pytest.mark.parametrize("values", (SUM, SUM @ ROTATION + 5, 1e-3 * SUM))
def test_a_sum_of_parts_scores_one(values) -> None:
    found, chance = measure_additivity(
        values,
        INDEX,
        SIZES,
        IS_OOD,
    )
    for name in ("", "_whitened", "_probes"):
        assert found.scores[f"additive_r2{name}"] == pytest.approx(1)
        assert chance.scores[f"additive_r2{name}"] < 0.2
    assert found.scores["composed_ood"] == pytest.approx(0, abs=1e-9)
    assert found.scores["accuracy_ood"] == 1
    assert sum(row["share"] for row in found.parts) == pytest.approx(1)
    for size, row in zip(SIZES, found.parts, strict=True):
        assert size - 2 < row["rank"] <= size - 1


@pytest.mark.parametrize("values", (PRODUCT, RANDOM))
def test_products_and_random_tables_score_at_chance(values) -> None:
    for table in measure_additivity(
        values,
        INDEX,
        SIZES,
        IS_OOD,
    ):
        r2 = table.scores["additive_r2"]
        assert r2 == pytest.approx(CHANCE, abs=0.02)
        assert table.scores["composed_ood"] > 1
        assert table.scores["accuracy_ood"] < 0.4


def test_a_sum_and_noise() -> None:
    """The noise has as much variance as the sum."""
    scale = np.sqrt(SUM.var(axis=0).sum() / RANDOM.var(axis=0).sum())
    found = score(SUM + scale * RANDOM)
    r2 = found["additive_r2"]
    assert r2 == pytest.approx((1 + CHANCE) / 2, abs=0.02)
    assert found["additive_r2_whitened"] < r2 < found["additive_r2_probes"]
    assert 0.4 < found["composed_ood"] < 0.8


COMMON = RNG.normal(size=UNITS)
ALONG = [RNG.normal(size=(size, 1)) * COMMON for size in SIZES]
AXES = ROTATION[:6].reshape(3, 2, UNITS)
APART = [RNG.normal(size=(s, 2)) @ a for s, a in zip(SIZES, AXES, strict=True)]
LEANING = [APART[0], APART[1] + APART[1] @ AXES[1].T @ AXES[0], APART[2]]


@pytest.mark.parametrize(
    ("parts", "cosine", "angle"),
    [(ALONG, 1, 0), (APART, 0, 90), (LEANING, None, 45)],
    ids=["along", "apart", "leaning"],
)
def test_correlated_parts_are_told_from_orthogonal_ones(
    parts, cosine, angle
) -> None:
    pair = measure(np.sum(look_up(parts), axis=0)).pairs[0]
    assert pair["angle"] == pytest.approx(angle, abs=1e-3)
    if cosine is not None:
        assert pair["cosine"] == pytest.approx(cosine, abs=1e-6)


@pytest.mark.parametrize("kept", (120, 90))
def test_the_peers_r2_by_scikit_learn(kept) -> None:
    rows = np.random.default_rng(1).permutation(len(INDEX))[:kept]
    values = (SUM + PRODUCT + RANDOM)[rows]
    index = INDEX[rows]
    found = measure(values, index, IS_OOD[rows]).scores
    expected = compute_r2(values, index)
    assert found["additive_r2"] == pytest.approx(expected, abs=1e-6)
    # Whitened: the mean over principal components.
    left, lengths, _ = np.linalg.svd(values - values.mean(axis=0), False)
    axes = left[:, lengths > 1e-6 * lengths[0]]
    r2 = [compute_r2(axis[:, None], index) for axis in axes.T]
    whitened = pytest.approx(np.mean(r2), abs=1e-6)
    assert found["additive_r2_whitened"] == whitened


def test_composition_by_its_definition() -> None:
    values = SUM + 0.5 * PRODUCT
    error = np.square(values - predict(values, INDEX, ~IS_OOD))[IS_OOD].sum()
    mean = values[~IS_OOD].mean(axis=0)
    expected = error / np.square(values - mean)[IS_OOD].sum()
    assert score(values)["composed_ood"] == pytest.approx(expected)


def test_blocks_and_rotations_change_nothing(monkeypatch) -> None:
    values = (SUM + RANDOM).astype(np.float32)
    expected = score(values)
    monkeypatch.setattr(additivity, "BLOCK_BYTES", 8 * UNITS * 7)
    assert score(values) == pytest.approx(expected, abs=1e-9)
    # More units than rows: the same by the span of the rows.
    spun = score(values @ np.eye(UNITS, 300, dtype=np.float32))
    for name in ("additive_r2", "additive_r2_probes", "composed_ood"):
        assert spun[name] == pytest.approx(expected[name], abs=1e-3)
    # As many components as rows: nothing is left to be explained.
    full = score(RNG.normal(size=(120, 300)))
    assert full["additive_r2_whitened"] is None
    # Many units are mixed.
    monkeypatch.setattr(additivity, "MAX_UNITS", 100)
    mixed = score(np.hstack([values] * 5))
    r2 = pytest.approx(expected["additive_r2"], abs=0.1)
    assert mixed["additive_r2"] == r2


def test_probes_as_by_scikit_learn() -> None:
    values = SUM + 2 * RANDOM
    train = additivity.split_rows(IS_OOD) == additivity.ID
    parts = measure(values).parts
    for size, labels, row in zip(SIZES, INDEX.T, parts, strict=True):
        model = LinearDiscriminantAnalysis(
            solver="lsqr",
            shrinkage=1e-3,
            priors=np.ones(size) / size,
        )
        model.fit(values[train], labels[train])
        expected = model.score(values[IS_OOD], labels[IS_OOD])
        assert row["accuracy_ood"] == pytest.approx(expected, abs=0.11)


def test_equal_embeddings_have_no_score() -> None:
    found = measure(np.ones((len(INDEX), 3)))
    assert found.scores["additive_r2"] is None
    assert found.scores["composed_ood"] is None
    assert {pair["cosine"] for pair in found.pairs} == {None}
