"""Sums of parts: planted embeddings, and slow definitions of the scores."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from tfcomp.representations import additivity
from tfcomp.representations.additivity import Additivity, measure_additivity

SIZES = (5, 6, 4)
INDEX = np.stack(np.meshgrid(*map(range, SIZES), indexing="ij"), -1)
INDEX = INDEX.reshape(-1, 3)
IS_OOD = (INDEX[:, 0] >= 3) & (INDEX[:, 1] >= 4)
UNITS = 40
RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(size, UNITS)) for size in SIZES]
ROTATION = np.linalg.qr(RNG.normal(size=(UNITS, UNITS)))[0]


def add(parts: list[np.ndarray], index: np.ndarray = INDEX) -> np.ndarray:
    return sum(part[column] for part, column in zip(parts, index.T))  # noqa: B905


SUM = add(PARTS)
PRODUCT = np.prod(
    [part[column] for part, column in zip(PARTS, INDEX.T, strict=True)], axis=0
)
RANDOM = RNG.normal(size=SUM.shape)


def measure(
    values: np.ndarray, index: np.ndarray = INDEX, is_ood: np.ndarray = IS_OOD
) -> tuple[Additivity, Additivity]:
    return measure_additivity(values, index, SIZES, is_ood)


def regress(
    values: np.ndarray, index: np.ndarray, targets: np.ndarray
) -> float:
    """The peer's R²: least squares on one-hot factors, by scikit-learn."""
    codes = OneHotEncoder(sparse_output=False).fit_transform(index)
    model = LinearRegression().fit(codes, values)
    rest = np.square(targets - model.predict(codes)).sum()
    return float(1 - rest / np.square(targets - targets.mean(axis=0)).sum())


@pytest.mark.parametrize("values", (SUM, SUM @ ROTATION + 5, 1e-3 * SUM))
def test_a_sum_of_parts_scores_one(values: np.ndarray) -> None:
    found, chance = measure(values)
    for name in ("", "_whitened", "_probes"):
        assert found.scores[f"additive_r2{name}"] == pytest.approx(1, abs=1e-9)
        assert chance.scores[f"additive_r2{name}"] < 0.2
    assert found.scores["composed_ood"] == pytest.approx(0, abs=1e-9)
    assert found.scores["accuracy_ood"] == 1
    assert sum(row["share"] for row in found.parts) == pytest.approx(1)
    ranks = [row["rank"] for row in found.parts]
    assert all(s - 2 < r <= s - 1 for s, r in zip(SIZES, ranks, strict=True))


@pytest.mark.parametrize("values", (PRODUCT, RANDOM))
def test_products_and_random_tables_score_at_chance(values: np.ndarray) -> None:
    found, chance = measure(values)
    expected = sum(size - 1 for size in SIZES) / (len(INDEX) - 1)
    for one in (found, chance):
        assert one.scores["additive_r2"] == pytest.approx(expected, abs=0.02)
        assert one.scores["composed_ood"] > 1
        assert one.scores["accuracy_ood"] < 0.4


def test_a_sum_and_noise() -> None:
    """The noise has as much variance as the sum."""
    noise = RANDOM * np.sqrt(SUM.var(axis=0).sum() / RANDOM.var(axis=0).sum())
    found, _ = measure(SUM + noise)
    degrees = sum(size - 1 for size in SIZES) / (len(INDEX) - 1)
    expected = (1 + degrees) / 2
    assert found.scores["additive_r2"] == pytest.approx(expected, abs=0.02)
    assert found.scores["additive_r2_probes"] > found.scores["additive_r2"]
    assert found.scores["additive_r2_whitened"] < found.scores["additive_r2"]
    assert 0.4 < found.scores["composed_ood"] < 0.8


def test_correlated_parts_are_told_from_orthogonal_ones() -> None:
    common = RNG.normal(size=UNITS)
    along = [RNG.normal(size=(size, 1)) * common for size in SIZES]
    apart = [
        RNG.normal(size=(size, 2)) @ ROTATION[2 * i : 2 * i + 2]
        for i, size in enumerate(SIZES)
    ]
    for parts, cosine, angle in ((along, 1.0, 0.0), (apart, 0.0, 90.0)):
        found, _ = measure(add(parts))
        assert found.scores["additive_r2"] == pytest.approx(1)
        for pair in found.pairs:
            assert pair["cosine"] == pytest.approx(cosine, abs=1e-6)
            assert pair["angle"] == pytest.approx(angle, abs=1e-3)
    leaning = [apart[0], apart[1] + apart[1] @ ROTATION[2:4].T @ ROTATION[:2]]
    (pair, *_), _ = measure(add([*leaning, apart[2]]))[0].pairs, None
    assert pair["angle"] == pytest.approx(45, abs=1e-3)


@pytest.mark.parametrize("kept", (120, 90))
def test_the_peers_r2_by_scikit_learn(kept: int) -> None:
    rows = np.random.default_rng(1).permutation(len(INDEX))[:kept]
    values, index = (SUM + PRODUCT + RANDOM)[rows], INDEX[rows]
    found, _ = measure(values, index, IS_OOD[rows])
    expected = regress(values, index, values)
    assert found.scores["additive_r2"] == pytest.approx(expected, abs=1e-6)
    # Whitened: the mean over principal components.
    left, lengths, _ = np.linalg.svd(values - values.mean(axis=0), False)
    axes = left[:, lengths > 1e-6 * lengths[0]]
    whitened = np.mean([regress(a[:, None], index, a[:, None]) for a in axes.T])
    name = "additive_r2_whitened"
    assert found.scores[name] == pytest.approx(whitened, abs=1e-6)


def test_composition_by_its_definition() -> None:
    values = SUM + 0.5 * PRODUCT
    codes = OneHotEncoder(sparse_output=False).fit_transform(INDEX)
    model = LinearRegression().fit(codes[~IS_OOD], values[~IS_OOD])
    error = np.square(values - model.predict(codes))[IS_OOD].sum()
    mean = values[~IS_OOD].mean(axis=0)
    expected = error / np.square(values - mean)[IS_OOD].sum()
    found, _ = measure(values)
    assert found.scores["composed_ood"] == pytest.approx(expected, rel=1e-6)


def test_blocks_and_rotations_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = (SUM + RANDOM).astype(np.float32)
    whole, _ = measure(values)
    monkeypatch.setattr(additivity, "BLOCK_BYTES", 8 * UNITS * 7)
    parts, _ = measure(values)
    assert parts.scores == pytest.approx(whole.scores, abs=1e-9)
    # More units than rows: the same by the span of the rows.
    wide = values @ np.eye(UNITS, 300, dtype=np.float32)
    spun, _ = measure(wide)
    for name in ("additive_r2", "additive_r2_probes", "composed_ood"):
        assert spun.scores[name] == pytest.approx(whole.scores[name], abs=1e-3)
    # As many components as rows: nothing is left to be explained.
    full, _ = measure(RNG.normal(size=(120, 300)))
    assert full.scores["additive_r2_whitened"] is None
    # Many units are mixed.
    monkeypatch.setattr(additivity, "MAX_UNITS", 100)
    wide = np.hstack([SUM + RANDOM] * 5)
    expected = measure(SUM + RANDOM)[0].scores["additive_r2"]
    found = measure(wide)[0].scores["additive_r2"]
    assert found == pytest.approx(expected, abs=0.1)


def test_probes_as_by_scikit_learn() -> None:
    values = SUM + 2 * RANDOM
    found, _ = measure(values)
    train = additivity.split_rows(IS_OOD) == additivity.ID
    for column, row in enumerate(found.parts):
        model = LinearDiscriminantAnalysis(
            solver="lsqr",
            shrinkage=1e-3,
            priors=np.ones(SIZES[column]) / SIZES[column],
        )
        model.fit(values[train], INDEX[train, column])
        expected = model.score(values[IS_OOD], INDEX[IS_OOD, column])
        assert row["accuracy_ood"] == pytest.approx(expected, abs=0.11)


def test_equal_embeddings_have_no_score() -> None:
    found, chance = measure(np.ones((len(INDEX), 3)))
    assert found.scores["additive_r2"] is None
    assert found.scores["composed_ood"] is None
    assert all(pair["cosine"] is None for pair in found.pairs)
    assert chance.scores["additive_r2"] is None
