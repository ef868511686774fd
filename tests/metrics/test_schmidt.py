"""Parts of kernels and of images: planted ones and the definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pytest import approx

from tests.metrics.planted import (
    compute_r2,
    make_bumps,
    make_grid,
    make_noise,
)
from tests.metrics.planted import explain as explain_parts
from tfcomp.metrics import kernels, schmidt
from tfcomp.metrics.schmidt import compute_interaction_r2, summarize_anova

SHAPE = (5, 6)
GRID = make_grid(*SHAPE)


def make_gram(count: int) -> np.ndarray:
    rows = make_noise(count, 9, seed=5)
    return rows @ rows.T


def explain(gram: np.ndarray, *factors: np.ndarray) -> float:
    """The share of the means over what all factors but these do."""
    values = np.stack(factors, axis=1)
    is_same = (values[:, None] == values).all(axis=2).astype(float)
    average = is_same / is_same.sum(axis=1, keepdims=True)
    means = average @ gram @ average.T
    return means.var() / gram.var()


def test_shares_equal_the_definition():
    gram = make_gram(30)

    anova = summarize_anova(3 * gram, SHAPE)

    x, y = GRID.T
    first = explain(gram, x)
    second = explain(gram, y)
    expected = {
        "anova_first": first,
        "anova_second": second,
        "anova_pairwise": 1 - first - second,
    }
    for name, share in expected.items():
        assert anova[name] == approx(share)


def test_orders_of_three_factors():
    grid = make_grid(2, 3, 2)
    gram = make_gram(len(grid))
    kernel = kernels.make_factorized_kernel(grid)

    anova = summarize_anova(gram, (2, 3, 2))
    additive = summarize_anova(kernel, (2, 3, 2))

    x, y, z = grid.T
    single = explain(gram, x) + explain(gram, y) + explain(gram, z)
    pairs = explain(gram, x, y) + explain(gram, x, z) + explain(gram, y, z)
    expected = {
        "anova_single": single,
        "anova_pairwise": pairs - 2 * single,
        "anova_higher": 1 - pairs + single,
        "factorization_ratio": single,
    }
    assert anova == approx(expected)
    assert additive["anova_single"] == approx(1)


# Images

BUMPS = make_bumps(make_grid(8, 8) + 2, 12)
ROWS = BUMPS.sum(axis=2, keepdims=True)
COLUMNS = BUMPS.sum(axis=1, keepdims=True)
PLUSES = ROWS + COLUMNS


def remove_marginals(images: np.ndarray) -> np.ndarray:
    """All that is no sum of a row's and a column's means, [n * H * W]."""
    parts = np.empty_like(images)
    for (n, i, j), value in np.ndenumerate(images):
        image = images[n]
        row = image[i].mean()
        column = image[:, j].mean()
        rest = row + column - image.mean()
        parts[n, i, j] = value - rest
    return parts.ravel()


def test_r2_of_parts_equals_least_squares():
    truth, noise = make_noise(2, 3, 4, 5)
    images = truth + noise

    r2 = compute_interaction_r2(images[..., None], truth[..., None])

    parts = remove_marginals(images)
    true_part = remove_marginals(truth)
    prediction = explain_parts(parts[None], true_part)
    assert r2 == approx(compute_r2(prediction, true_part))


@pytest.mark.parametrize(
    "images, truth, expected",
    [
        (0.2 * BUMPS + 0.5, BUMPS, 1.0),
        (PLUSES, BUMPS, 0.0),  # its peak is where the bump has it
        (0 * BUMPS + 0.3, BUMPS, 0.0),
        (-BUMPS, BUMPS, 0.0),
        (PLUSES + 0.5 * BUMPS, BUMPS, 1.0),
        (BUMPS * np.nan, BUMPS, None),
        (BUMPS[:0], BUMPS[:0], None),
        (BUMPS, PLUSES, None),
    ],
)
def test_planted_images(images, truth, expected):
    r2 = compute_interaction_r2(images[..., None], truth[..., None])
    assert r2 == approx(expected, abs=1e-6)


# Schmidt decomposition


@pytest.mark.parametrize(
    "sizes",
    [
        (4, 5),
        (5, 3),
        (1, 4),
        (6, 6),
        (1, 1),
    ],
)
def test_values_equal_the_definition(sizes):
    nx, ny = sizes
    gram = make_gram(nx * ny)

    values = schmidt.compute_schmidt_values(gram, sizes)

    realigned = np.empty((nx * nx, ny * ny))
    by_factor = gram.reshape(nx, ny, nx, ny)
    for (x, y, x_other, y_other), value in np.ndenumerate(by_factor):
        row = x * nx + x_other
        column = y * ny + y_other
        realigned[row, column] = value
    expected = np.linalg.svd(realigned, compute_uv=False)
    assert_allclose(values, expected, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e6])
@pytest.mark.parametrize("width", [0.0, 1.5])
@pytest.mark.parametrize(
    "name, rank",
    [
        ("conjunctive", 1),
        ("factorized", 2),
    ],
)
def test_planted_ranks(name, rank, width, scale):
    grid = make_grid(7, 6).astype(float)
    kernel = kernels.IDEAL_KERNELS[name](grid, width=width)
    gram = scale * kernel

    values = schmidt.compute_schmidt_values(gram, (7, 6))
    explained = schmidt.compute_explained_fraction(values)
    summary = schmidt.summarize_schmidt(gram, (7, 6))

    is_kept = values > 1e-12 * values[0]
    assert is_kept.sum() == rank
    assert explained[rank - 1] == approx(1)
    effective = summary["schmidt_effective_rank"]
    assert rank - 1 < effective <= rank + 1e-9


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_blank_and_broken_kernels_give_none(value):
    gram = np.full((30, 30), value)

    with np.errstate(invalid="ignore"):
        anova = summarize_anova(gram, SHAPE)
        centered = schmidt.center_kernel(gram)
    numbers = [anova]
    for kernel in (gram, centered):
        numbers.append(schmidt.summarize_schmidt(kernel, SHAPE))

    for scores in numbers:
        assert set(scores.values()) == {None}


def test_centering_equals_its_definition():
    rows = make_noise(30, 9) + 2
    gram = rows @ rows.T
    rows -= rows.mean(axis=0)
    centered = rows @ rows.T

    kernel = schmidt.center_kernel(gram)

    assert_allclose(kernel, centered, atol=1e-10)
