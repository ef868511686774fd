"""Manifolds: planted components, curves with and without a jump, UMAP."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy.spatial.distance import cosine, pdist
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from tests.metrics.planted import make_noise
from tfcomp.metrics import manifolds
from tfcomp.metrics.features import compute_rows

NUM_POINTS = 72
PLACES = np.arange(NUM_POINTS)
ANGLES = PLACES * 2 * np.pi / NUM_POINTS
CIRCLE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
IN_GAP = (PLACES >= 30) & (PLACES < 42)
NOTHING = np.zeros(NUM_POINTS, bool)
NAMES = ("speed_ratio", "turning_ratio", "max_speed_ratio", "max_turning_ratio")


def compute_pca(
    activations: np.ndarray,
    count: int = NUM_POINTS,
) -> manifolds.Components:
    nothing = np.zeros(len(activations), bool)
    rows = compute_rows(activations, nothing)
    return manifolds.compute_components(rows, count)


def embed(points: np.ndarray, units: int) -> np.ndarray:
    """The same points in more dimensions, turned, scaled and shifted."""
    random = make_noise(units, points.shape[1])
    directions, _ = np.linalg.qr(random)
    shift = make_noise(units)
    return 5 * points @ directions.T + shift


@pytest.mark.parametrize("units", [2, 5, 40, 500])
def test_components_equal_those_of_another_library(units, rng):
    spread = rng.uniform(0.1, 2, size=units)
    activations = np.float32(spread * make_noise(40, units))
    variance = activations.var(axis=0)
    scale = np.sqrt(variance.sum())
    count = min(3, units)

    pca = compute_pca(activations)
    kept = compute_pca(activations, count)

    distances = pdist(activations) / scale
    assert pca.features.shape == (40, min(40, units))
    assert pca.explained.sum() == approx(1)
    assert_allclose(pdist(pca.features), distances, rtol=1e-4)

    reference = PCA(count).fit(activations)
    shares = reference.explained_variance_ratio_
    assert_allclose(kept.explained, shares, atol=1e-5)
    expected = reference.transform(activations) / scale
    largest = np.abs(expected).argmax(axis=0)
    signs = np.sign(expected[largest, range(count)])
    assert_allclose(kept.features, expected * signs, atol=1e-3)


@pytest.mark.parametrize("periodic", [False, True])
def test_speed_and_turning_equal_loops(periodic):
    points = make_noise(9, 6)

    images = points.reshape(9, 2, 3)
    speed, angle = manifolds.compute_steps(images, periodic)

    for i in range(9):
        step = points[(i + 1) % 9] - points[i]
        before = points[i] - points[i - 1]
        length = np.linalg.norm(step)
        turning = np.degrees(np.arccos(1 - cosine(step, before)))
        if not periodic and i == 8:
            length = np.nan
        if not periodic and i in (0, 8):
            turning = np.nan
        assert_allclose(speed[i], length)
        assert_allclose(angle[i], turning)


def test_a_curve_that_ignores_the_gap_has_ratios_of_one():
    curve = embed(CIRCLE, 30)

    ratios = manifolds.compute_gap_statistics(curve, IN_GAP, periodic=True)

    expected = dict.fromkeys(NAMES, 1)
    assert ratios == approx(expected)
    assert {type(value) for value in ratios.values()} == {float}


@pytest.mark.parametrize("border", [29, 41])
def test_one_jump_shows_in_the_maximum(border):
    """Into a third dimension, at a border: the median does not see it."""
    points = np.column_stack([CIRCLE, PLACES > border])

    ratios = manifolds.compute_gap_statistics(embed(points, 30), IN_GAP)

    for name in ("speed_ratio", "turning_ratio"):
        assert ratios[name] == approx(1)
        assert ratios[f"max_{name}"] > 10


ROUNDING = 1 + 1e-7 * make_noise(NUM_POINTS, 40)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "activations, is_gap",
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
def test_there_is_no_ratio(activations, is_gap):
    stage = activations.astype(np.float32)
    ratios = manifolds.compute_gap_statistics(stage, is_gap)
    assert ratios == dict.fromkeys(NAMES)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("units", [3, 100])
def test_dead_stage_has_no_components_and_is_not_embedded(units):
    constant = np.full((20, units), 0.3, np.float32)

    dead = compute_pca(constant)
    embedded = manifolds.compute_umaps({"dead": dead})["dead"]

    assert not dead.features.any()
    assert not dead.explained.any()
    assert embedded.shape == (20, 2)
    assert np.isnan(embedded).all()


def test_umap_takes_five_points():
    few = compute_pca(np.eye(4))
    with pytest.raises(ValueError, match="5 points"):
        manifolds.compute_umaps({"few": few})


@pytest.mark.filterwarnings("error")
@pytest.mark.slow
@pytest.mark.parametrize("without_compiler", ["1", ""])
def test_umap_keeps_neighbors_and_is_reproducible(
    without_compiler, monkeypatch
):
    """Its compiler takes half a minute, its Python code some seconds."""
    if not manifolds.has_umap():
        pytest.skip("umap-learn is not installed")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", without_compiler)
    points = embed(CIRCLE[::6], 40)
    pca = compute_pca(points)
    stages = dict.fromkeys(["one", "other"], pca)
    maps = manifolds.compute_umaps(stages)
    first, again = maps.values()

    assert first.shape == (12, 2)
    assert trustworthiness(points, first, n_neighbors=4) > 0.95
    assert_array_equal(again, first)


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


def test_one_process_serves_all_and_ends_with_one_line(tmp_path, monkeypatch):
    (tmp_path / "umap.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)
    points = np.zeros((5, 4), np.float32)

    maps = manifolds.embed_elsewhere([points, points + 1])

    with pytest.raises(OSError, match="LLVM ERROR: inconsistency"):
        manifolds.embed_elsewhere([points + 7])
    assert_array_equal(maps[1], maps[0] + 1)
    number_of_process = maps[0].min()
    assert number_of_process not in (0, os.getpid())
