"""The interaction part of images: planted pluses, bumps and blanks."""

import numpy as np
import pytest

from tests.analysis.planted import make_bumps, make_grid
from tfcomp.analysis.kernel_anova import (
    compute_interaction_r2,
    compute_interaction_size,
    remove_marginals,
)

BUMPS = make_bumps(make_grid(8, 8) + 2, 12)
PLUSES = np.stack(
    [np.add.outer(b.sum(axis=1), b.sum(axis=0)) for b in BUMPS]
).astype(np.float32)


def test_against_loops(rng: np.random.Generator) -> None:
    images, truth = rng.normal(size=(2, 3, 4, 5))
    found = remove_marginals(images)
    for image, part in zip(images, found, strict=True):
        for i in range(4):
            for j in range(5):
                rest = image[i].mean() + image[:, j].mean() - image.mean()
                assert part[i, j] == pytest.approx(image[i, j] - rest)
    true = remove_marginals(truth)
    images[np.vdot(found, true) < 0] *= -1
    found = remove_marginals(images)
    scale = np.linalg.lstsq(found.reshape(-1, 1), true.ravel(), rcond=None)[0][
        0
    ]
    expected = 1 - np.sum((scale * found - true) ** 2) / np.sum(true**2)
    expected = expected if scale > 0 else 0.0
    assert compute_interaction_r2(images, truth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (BUMPS, 1.0),
        (0.2 * BUMPS + 0.5, 1.0),
        (PLUSES, 0.0),
        (1 - PLUSES, 0.0),
        (0 * BUMPS, 0.0),
        (0 * BUMPS + 0.3, 0.0),
        (-BUMPS, 0.0),
        (PLUSES + 0.5 * BUMPS, 1.0),
        (BUMPS * np.nan, None),
        (BUMPS[:0], None),
    ],
    ids=str,
)
def test_planted(images: np.ndarray, expected: float | None) -> None:
    """Every plus has its peak where the bump has it."""
    found = compute_interaction_r2(images, BUMPS[: len(images)])
    assert found == pytest.approx(expected, abs=1e-6)


def test_other_bumps_and_noise_explain_little(rng: np.random.Generator) -> None:
    shuffled = BUMPS[rng.permutation(len(BUMPS))]
    assert compute_interaction_r2(shuffled, BUMPS) < 0.05
    noise = rng.normal(size=BUMPS.shape)
    assert compute_interaction_r2(noise, BUMPS) < 0.01
    # A bump in one image only does not make up for the others.
    single = np.where(np.arange(len(BUMPS))[:, None, None] == 5, BUMPS, 0)
    assert compute_interaction_r2(single, BUMPS) < 0.05


def test_a_truth_that_is_a_sum_has_none() -> None:
    assert compute_interaction_r2(BUMPS, PLUSES) is None


@pytest.mark.parametrize(
    ("images", "amplitude", "variance"),
    [
        (BUMPS, 1, None),
        (0.2 * BUMPS + 0.5, 0.2, None),
        (-BUMPS, 1, None),
        (PLUSES, 0, 0),
        (0 * BUMPS + 0.3, 0, 0),
        (PLUSES + 0.001 * BUMPS, 0.001, 1e-8),
    ],
    ids=["bump", "faint", "negative", "plus", "even", "plus and faint bump"],
)
def test_size(
    images: np.ndarray, amplitude: float, variance: float | None
) -> None:
    """R^2 of the last one is 1, though nothing can be seen of its bump."""
    found = compute_interaction_size(images, BUMPS)
    assert found["amplitude"] == pytest.approx(amplitude, abs=1e-6)
    # By loops over pixels, of one image, as all are alike inside.
    image = BUMPS[27]
    rest = np.add.outer(image.mean(axis=1), image.mean(axis=0)) - image.mean()
    share = np.sum((image - rest) ** 2) / np.sum((image - image.mean()) ** 2)
    assert found["truth_variance"] == pytest.approx(share, abs=0.03)
    expected = found["truth_variance"] if variance is None else variance
    assert found["variance"] == pytest.approx(expected, abs=1e-7)


def test_size_of_nothing() -> None:
    broken = compute_interaction_size(BUMPS * np.nan, BUMPS)
    assert set(broken.values()) == {None}
    assert compute_interaction_size(BUMPS, PLUSES)["amplitude"] is None
