"""Manifolds: planted components, curves with and without a jump, UMAP."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from tfcomp.metrics import manifolds
from tfcomp.metrics.features import compute_rows

NUM_POINTS = 72
ANGLES = np.arange(NUM_POINTS) * 2 * np.pi / NUM_POINTS
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
IN_GAP = (np.arange(NUM_POINTS) >= 30) & (np.arange(NUM_POINTS) < 42)
NAMES = ("speed_ratio", "turning_ratio", "max_speed_ratio", "max_turning_ratio")


def compute_pca(
    activations: np.ndarray, count: int | None = None
) -> manifolds.Components:
    flat = np.reshape(activations, (len(activations), -1))
    rows = compute_rows(flat, np.zeros(len(flat), bool))
    return manifolds.compute_components(rows, count)


def embed(points: np.ndarray, units: int) -> np.ndarray:
    """The same points in more dimensions, turned, scaled and shifted."""
    rng = np.random.default_rng(7)
    directions, _ = np.linalg.qr(rng.normal(size=(units, points.shape[1])))
    return 5 * points @ directions.T + rng.normal(size=units)


@pytest.mark.parametrize("units", [2, 5, 40, 500])
def test_components_equal_those_of_another_library(
    units: int, rng: np.random.Generator
) -> None:
    activations = rng.normal(size=(40, units)) * rng.uniform(0.1, 2, size=units)
    activations = activations.astype(np.float32)
    found = compute_pca(activations.reshape(40, 1, units))
    assert found.features.shape == (40, min(40, units))
    assert found.explained.sum() == pytest.approx(1)
    scale = np.sqrt(activations.var(axis=0).sum())
    distances = pdist(activations) / scale
    np.testing.assert_allclose(pdist(found.features), distances, rtol=1e-4)
    count = min(3, units)
    kept = compute_pca(activations, count)
    reference = PCA(count).fit(activations)
    np.testing.assert_allclose(
        kept.explained, reference.explained_variance_ratio_, atol=1e-5
    )
    expected = reference.transform(activations)
    largest = np.argmax(np.abs(expected), axis=0)
    expected *= np.sign(expected[largest, range(count)]) / scale
    np.testing.assert_allclose(kept.features, expected, atol=1e-3)


@pytest.mark.parametrize("periodic", [False, True])
def test_speed_and_turning_equal_loops(
    periodic: bool, rng: np.random.Generator
) -> None:
    points = rng.normal(size=(9, 2, 3))
    speed, angle = manifolds.compute_steps(points, periodic)
    assert speed.shape == angle.shape == (9,)
    flat = points.reshape(9, 6)
    for i in range(9):
        step = flat[(i + 1) % 9] - flat[i]
        before = flat[i] - flat[i - 1]
        length = np.sqrt(sum(step**2))
        cosine = step @ before / length / np.sqrt(sum(before**2))
        is_end = not periodic and i == 8
        np.testing.assert_allclose(speed[i], np.nan if is_end else length)
        is_end = not periodic and i in (0, 8)
        expected = np.nan if is_end else np.degrees(np.arccos(cosine))
        np.testing.assert_allclose(angle[i], expected)


def test_a_curve_that_ignores_the_gap_has_ratios_of_one() -> None:
    found = manifolds.compute_gap_statistics(
        embed(CIRCLE, 30), IN_GAP, periodic=True
    )
    assert found == {name: pytest.approx(1) for name in NAMES}
    assert all(type(value) is float for value in found.values())


@pytest.mark.parametrize("border", [29, 41])
def test_one_jump_shows_in_the_maximum(border: int) -> None:
    """Into a third dimension, at a border: the median does not see it."""
    points = np.column_stack([CIRCLE, np.arange(NUM_POINTS) > border])
    found = manifolds.compute_gap_statistics(embed(points, 30), IN_GAP)
    assert found["speed_ratio"] == pytest.approx(1)
    assert found["max_speed_ratio"] > 10
    assert found["turning_ratio"] == pytest.approx(1)
    assert found["max_turning_ratio"] > 10


ROUNDING = 1 + 1e-7 * np.random.default_rng(0).normal(size=(NUM_POINTS, 40))
NOTHING = np.zeros(NUM_POINTS, bool)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("activations", "is_gap"),
    [
        (0 * CIRCLE, IN_GAP),
        (0 * CIRCLE + 0.3, IN_GAP),
        (np.nan * CIRCLE, IN_GAP),
        (ROUNDING, IN_GAP),
        (CIRCLE, NOTHING),
        (CIRCLE, ~NOTHING),
    ],
    ids=["black", "dead", "diverged", "rounding", "no gap", "all gap"],
)
def test_there_is_no_ratio(activations: np.ndarray, is_gap: np.ndarray) -> None:
    found = manifolds.compute_gap_statistics(
        activations.astype(np.float32), is_gap
    )
    assert found == dict.fromkeys(NAMES)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("units", [3, 100])
def test_dead_stage_has_no_components_and_is_not_embedded(units: int) -> None:
    dead = compute_pca(np.full((20, units), 0.3, np.float32))
    assert not dead.features.any() and not dead.explained.any()
    found = manifolds.compute_umaps({"dead": dead})["dead"]
    assert found.shape == (20, 2) and np.isnan(found).all()
    with pytest.raises(ValueError, match="at least 5 points"):
        manifolds.compute_umaps({"few": compute_pca(np.eye(4))})


@pytest.mark.filterwarnings("error")
@pytest.mark.slow
@pytest.mark.parametrize("without_compiler", ["1", ""])
def test_umap_keeps_neighbors_and_is_reproducible(
    without_compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its compiler takes half a minute, its Python code some seconds."""
    if not manifolds.has_umap():
        pytest.skip("umap-learn is not installed")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", without_compiler)
    points = embed(CIRCLE[::6], 40)
    pca = compute_pca(points)
    first, again = manifolds.compute_umaps({"one": pca, "other": pca}).values()
    assert first.shape == (12, 2) and np.isfinite(first).all()
    assert trustworthiness(points, first, n_neighbors=4) > 0.95
    np.testing.assert_array_equal(again, first)


FAKE = """
import os, sys

class UMAP:
    def __init__(self, **_):
        pass
    def fit_transform(self, features):
        print("a library says something")
        assert sys.modules["tensorflow"] is None
        if features[0, 0] == 7:
            print("LLVM ERROR: inconsistency", file=sys.stderr, flush=True)
            os.abort()
        return features[:, :2] + os.getpid()
"""


@pytest.fixture
def fake_umap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "umap.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "umap.py"


def test_one_process_serves_all_and_ends_with_one_line(fake_umap: Path) -> None:
    points = np.arange(20, dtype=np.float32).reshape(5, 4)
    first, second = manifolds.embed_elsewhere([points, points + 1])
    np.testing.assert_array_equal(second, first + 1)
    assert (first[0, 0] - points[0, 0]) not in (0, os.getpid())
    points = np.full((5, 4), 7, np.float32)
    with pytest.raises(OSError, match="ended: LLVM ERROR: inconsistency"):
        manifolds.embed_elsewhere([points])
    fake_umap.write_text("raise ImportError('no UMAP here')")
    with pytest.raises(OSError, match="ended: ImportError: no UMAP here"):
        manifolds.embed_elsewhere([np.eye(5, dtype=np.float32)])
