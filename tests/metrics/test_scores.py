"""Scores against plain loops, on good, bad and degenerate images."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy import ndimage

from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.metrics import scores
from tfcomp.metrics.point_scores import compute_ssim_error

SIZE = 12
DARK = "dark"


@pytest.fixture(params=["bright", DARK])
def polarity(request) -> str:
    return request.param


def make_bump(
    x: float,
    y: float,
) -> np.ndarray:
    return make_bumps(np.array([[x, y]]), SIZE)[0]


def to_polarity(
    bright: np.ndarray,
    polarity: str,
) -> np.ndarray:
    if polarity == "bright":
        return bright
    return 1 - bright


def score(
    images: np.ndarray,
    truth: np.ndarray,
    positions=None,
    polarity: str = "bright",
    reference=None,
) -> dict[str, float | None]:
    each = scores.score_images(
        images,
        truth,
        positions,
        polarity,
        reference,
    )
    return scores.average_scores(each)


def locate(
    image: np.ndarray,
    position: tuple[float, float],
    polarity: str = "bright",
) -> tuple[float, bool]:
    """Scores one image: error and accuracy of its position."""
    blank = np.zeros_like(image[None])
    each = scores.score_images(
        image[None],
        blank,
        [position],
        polarity,
    )
    return each["position_error"][0], each["position_accuracy"][0]


def test_mse_equals_a_plain_loop(rng) -> None:
    images, truth = rng.random((2, 3, 4, 5)).astype(np.float32)
    expected = np.zeros(3)
    for n, row, column in np.ndindex(3, 4, 5):
        error = float(images[n, row, column]) - float(truth[n, row, column])
        expected[n] += error**2 / 20
    per_image = scores.compute_mse_per_image(images, truth)
    assert_allclose(per_image, expected)
    with_channel = scores.compute_mse_per_image(images[..., None], truth)
    assert_array_equal(with_channel, per_image)
    with pytest.raises(
        ValueError,
        match="size",
    ):  # it is not broadcast
        scores.compute_mse_per_image(images, truth[:1])


def test_channels_count_as_pixels_and_peaks_are_of_their_mean(rng) -> None:
    images, truth = rng.random((2, 4, 3, 5, 3))
    mean = truth.mean(axis=0)
    numbers = score(
        images,
        truth,
        reference=mean,
    )
    error = ((images - truth) ** 2).mean()
    assert numbers["mse"] == approx(error)
    relative = error / ((mean - truth) ** 2).mean()
    assert numbers["relative_mse"] == approx(relative)
    peaks = scores.compute_peaks(images, "bright")
    expected = scores.compute_peaks(images.mean(axis=-1), "bright")
    assert_array_equal(peaks, expected)


def test_ssim_equals_its_definition(rng) -> None:
    images, truth = rng.random((2, 3, 13, 12, 2)).astype(np.float32)
    truth[1] = images[1]
    images[2] = 1 - truth[2]
    row, column = np.mgrid[-5:6, -5:6]
    window = np.exp(-(row**2 + column**2) / (2 * 1.5**2))
    window /= window.sum()
    similarity = np.zeros(3)
    for n, i, j, channel in np.ndindex(
        3,
        3,
        2,
        2,
    ):
        place = n, slice(i, i + 11), slice(j, j + 11), channel
        a = images[place].astype(float)
        b = truth[place].astype(float)
        mean_a = (window * a).sum()
        mean_b = (window * b).sum()
        spread = (window * ((a - mean_a) ** 2 + (b - mean_b) ** 2)).sum()
        shared = (window * (a - mean_a) * (b - mean_b)).sum()
        level = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
        similarity[n] += level * (2 * shared + 9e-4) / (spread + 9e-4) / 12
    found = compute_ssim_error(images, truth)
    assert_allclose(found, 1 - similarity, atol=1e-5)
    assert found[1] == approx(0, abs=1e-6)
    assert 1 < found[2] < 2
    images[0, 4, 4] = np.nan
    assert np.isnan(compute_ssim_error(images, truth)).tolist() == [1, 0, 0]


def test_relative_mse(polarity) -> None:
    truth = to_polarity(np.stack([make_bump(3, 8), make_bump(5, 5)]), polarity)
    blank = to_polarity(np.zeros_like(truth), polarity)
    halfway = (truth + blank) / 2
    for images, expected in ((truth, 0), (blank, 1), (halfway, 0.25)):
        numbers = score(
            images,
            truth,
            polarity=polarity,
        )
        assert numbers["relative_mse"] == approx(expected)
    assert (
        score(
            truth,
            blank,
            polarity=polarity,
        )["relative_mse"]
        is None
    )


def test_peaks_are_x_then_y(polarity) -> None:
    positions = [(2, 9), (9, 2), (0, 11), (11, 0), (0, 0), (11, 11), (5, 6)]
    images = make_bumps(np.array(positions), SIZE)
    peaks = scores.compute_peaks(to_polarity(images, polarity), polarity)
    assert_array_equal(peaks, positions)


@pytest.mark.parametrize(
    ("position", "error", "is_right"),
    [
        ((2, 9), 0, True),
        ((9, 2), 7 * math.sqrt(2), False),
        ((3, 8), math.sqrt(2), True),
        ((3.01, 9), 1.01, False),
        ((2, 7.5), 1.5, False),
        ((2.6, 8.4), math.hypot(0.6, 0.6), True),
    ],
)
def test_position_of_swapped_axes_is_wrong(
    position, error, is_right, polarity
) -> None:
    image = to_polarity(make_bump(2, 9), polarity)
    expected = (approx(error, abs=1e-12), is_right)
    assert locate(image, position, polarity) == expected


def test_absent_coordinate_is_ignored() -> None:
    stripe = np.zeros((SIZE, SIZE))
    stripe[:, 4] = 1
    assert locate(stripe, (4, np.nan)) == (0, True)
    assert locate(stripe, (7, np.nan)) == (3, False)
    assert not locate(stripe, (np.nan, np.nan))[1]


def test_blank_image_is_nowhere_right(polarity) -> None:
    blank = to_polarity(np.zeros((SIZE, SIZE)), polarity)
    assert not any(
        locate(blank, place, polarity)[1] for place in np.ndindex(blank.shape)
    )
    assert scores.count_peaks(blank[None], polarity).tolist() == [0]


@pytest.mark.parametrize(
    ("height", "plus", "hits"),
    [(1.0, 0, 1), (1e-9, 0, 0), (1.0, 1, 0)],
)
def test_hits(height, plus, hits) -> None:
    """The published accuracy counts bumps of height 1e-9, and pluses."""
    grid = make_grid(14, 14)
    grid = grid[hold_out(grid, 2, 11)]
    bumps = make_bumps(grid, 14)
    images = height * bumps
    if plus:
        rows = bumps.max(axis=2, keepdims=True)
        images = rows + bumps.max(axis=1, keepdims=True)
    numbers = score(images, bumps, grid)
    assert numbers["position_accuracy"] == 1
    assert numbers["hit_rate"] == hits


TWO = make_bump(2, 3) + make_bump(8, 9)


def make_dots(
    column: int,
    between: float = 0.0,
) -> np.ndarray:
    dots = np.zeros((SIZE, SIZE))
    dots[2, 4] = between
    dots[2, 2] = 1
    dots[2, column] = 0.9
    return dots


@pytest.mark.parametrize(
    ("image", "count"),
    [
        (TWO, 2),
        (0.2 * TWO, 2),  # faint, as many superpositions are
        (0.01 * TWO, 0),  # ripple
        (5e-4 * TWO, 0),  # noise
        (0 * TWO, 0),
        (100 * make_bump(2, 3) + make_bump(8, 9), 1),
        (make_bump(2, 3) + 0.51 * make_bump(8, 9), 2),
        (make_bump(2, 3) + 0.49 * make_bump(8, 9), 1),
        # Ripples on one bump are one peak; dots 3 px apart are two.
        (make_dots(4), 1),
        (make_dots(5), 2),
        (
            make_dots(
                7,
                between=0.8,
            ),
            2,
        ),  # hides behind both
    ],
)
def test_number_of_peaks_of_an_image_by_its_own_measure(
    image, count, polarity
) -> None:
    images = to_polarity(image[None], polarity)
    assert scores.count_own_peaks(images, polarity).tolist() == [count]


def count_slowly(image: np.ndarray) -> int:
    """Looks at every plateau above 0.5 for a higher neighbor."""
    near = np.ones((3, 3))
    num_peaks = 0
    for level in np.unique(image[image > 0.5]):
        plateaus, count = ndimage.label(image == level, near)
        for label in range(1, count + 1):
            around = ndimage.binary_dilation(plateaus == label, near)
            num_peaks += image[around].max() == level
    return num_peaks


@pytest.mark.parametrize("num_levels", [3, 5, 1000])
def test_number_of_peaks_equals_a_flood(num_levels, rng) -> None:
    # Few levels make plateaus, many make single peaks; those of one image do
    # not join those at the same place of the next.
    images = rng.integers(0, num_levels, (30, 6, 9)) / (num_levels - 1)
    expected = [count_slowly(image) for image in images]
    assert scores.count_peaks(images, "bright").tolist() == expected
    assert scores.count_peaks(1 - images, DARK).tolist() == expected


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_diverged_model_is_never_right(value, polarity) -> None:
    positions = np.array([(0, 0), (4, 7)])
    truth = to_polarity(make_bumps(positions, SIZE), polarity)
    images = truth.copy()
    images[0, 3, 3] = value
    assert scores.count_peaks(images, polarity).tolist() == [0, 1]
    counts = scores.count_own_peaks(images, polarity)
    assert_array_equal(counts, [np.nan, 1])
    assert score(
        images,
        truth,
        positions,
        polarity,
    ) == {
        "mse": None,
        "relative_mse": None,
        "r2": None,
        "hit_rate": 0.5,
        "position_accuracy": 0.5,
        "position_error": None,
        "num_peaks": 0.5,
    }
