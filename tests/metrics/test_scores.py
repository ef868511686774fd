"""Scores against plain loops, on good, bad and degenerate images."""

import math

import numpy as np
import pytest
from numpy import ndarray as Array
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy import ndimage

from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.metrics import scores
from tfcomp.metrics.output_analysis import compute_ssim_error

SIZE = 12


@pytest.fixture(params=["bright", "dark"])
def polarity(request) -> str:
    return request.param


def make_bump(x: float, y: float) -> Array:
    (bump,) = make_bumps(np.array([[x, y]]), SIZE)
    return bump


def to_polarity(bright: Array, polarity: str) -> Array:
    """Images [n, H, W, 1] of bright ones [n, H, W]."""
    bright = bright[..., None]
    if polarity == "bright":
        return bright
    return 1 - bright


def score(
    images: Array,
    truth: Array,
    positions=None,
    polarity: str = "bright",
    reference=None,
) -> dict[str, float | None]:
    if reference is None:
        reference = scores.BACKGROUNDS[polarity]
    by_image = scores.score_images(
        images,
        truth,
        positions,
        polarity,
        reference,
    )
    return scores.average_scores(by_image, offset=0.0)


def test_mse_equals_a_plain_loop(rng):
    images, truth = rng.random((2, 3, 4, 5, 2), np.float32)

    mse = scores.compute_mse_per_image(images, truth)

    expected = np.zeros(3)
    for place in np.ndindex(images.shape):
        error = float(images[place]) - float(truth[place])
        expected[place[0]] += error**2 / 40
    assert_allclose(mse, expected)


def test_channels_count_as_pixels_and_peaks_are_of_their_mean(rng):
    images, truth = rng.random((2, 4, 3, 5, 3))
    mean = truth.mean(axis=0)

    numbers = score(images, truth, reference=mean)
    peaks = scores.compute_peaks(images, "bright")

    error = np.square(images - truth).mean()
    blank = np.square(mean - truth).mean()
    gray = images.mean(axis=-1, keepdims=True)
    gray_peaks = scores.compute_peaks(gray, "bright")
    assert numbers["mse"] == approx(error)
    assert numbers["relative_mse"] == approx(error / blank)
    assert_array_equal(peaks, gray_peaks)


def average_window(values: Array) -> Array:
    """Means under a Gaussian window of 1.5 pixels, [n, 3, 2, 2]."""
    steps = np.arange(-5, 6) / 1.5
    profile = np.exp(-(steps**2) / 2)
    profile /= profile.sum()
    rows = sliding_window_view(values, 11, axis=1) @ profile
    return sliding_window_view(rows, 11, axis=2) @ profile


def test_ssim_equals_its_definition(rng):
    images, truth = rng.random((2, 3, 13, 12, 2), np.float32)
    truth[1] = images[1]
    images[2] = 1 - truth[2]

    error = compute_ssim_error(images, truth)

    mean = average_window(images)
    true_mean = average_window(truth)
    squares = mean**2 + true_mean**2
    product = mean * true_mean
    spread = average_window(images**2 + truth**2) - squares
    shared = average_window(images * truth) - product
    luminance = (2 * product + 1e-4) / (squares + 1e-4)
    structure = (2 * shared + 9e-4) / (spread + 9e-4)
    similarity = (luminance * structure).mean(axis=(1, 2, 3))
    assert_allclose(error, 1 - similarity, atol=1e-5)
    assert error[1] == approx(0, abs=1e-6)
    assert 1 < error[2] < 2


def test_broken_images_have_no_ssim(rng):
    images = rng.random((3, 13, 12, 2))
    broken = images.copy()
    broken[0, 4, 4] = np.nan

    error = compute_ssim_error(broken, images)

    assert np.isnan(error).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "contrast, expected",
    [
        (1, 0),
        (0, 1),
        (0.5, 0.25),
    ],
)
def test_relative_mse(contrast, expected, polarity):
    bump = make_bump(3, 8)[None]
    truth = to_polarity(bump, polarity)
    images = to_polarity(contrast * bump, polarity)

    numbers = score(images, truth, polarity=polarity)

    assert numbers["relative_mse"] == approx(expected)


def test_blank_truth_has_no_relative_mse(polarity):
    truth = to_polarity(np.zeros((1, SIZE, SIZE)), polarity)
    numbers = score(truth, truth, polarity=polarity)
    assert numbers["relative_mse"] is None


@pytest.mark.parametrize(
    "position, error, is_right",
    [
        ((2, 9), 0, True),
        ((9, 2), math.hypot(7, 7), False),  # swapped axes
        ((3, 8), math.hypot(1, 1), True),
        ((3.01, 9), 1.01, False),
        ((2, 7.5), 1.5, False),
        ((2.6, 8.4), math.hypot(0.6, 0.6), True),
        # An absent coordinate is ignored.
        ((2, math.nan), 0, True),
        ((5, math.nan), 3, False),
    ],
)
def test_positions(position, error, is_right, polarity):
    bump = make_bump(2, 9)[None]
    images = to_polarity(bump, polarity)

    by_image = scores.score_images(images, images, [position], polarity, 0.0)

    assert by_image["position_accuracy"] == [is_right]
    assert by_image["position_error"] == approx([error], abs=1e-12)


@pytest.mark.parametrize(
    "contrast, position",
    [
        (1, [math.nan, math.nan]),
        (0, [2, 9]),
        (0, [0, 0]),
    ],
)
def test_no_position_and_blank_images_are_never_right(
    contrast, position, polarity
):
    bump = contrast * make_bump(2, 9)[None]
    images = to_polarity(bump, polarity)

    numbers = score(images, images, [position], polarity)

    assert numbers["position_accuracy"] == 0


def test_hits():
    """The published accuracy counts bumps of height 1e-9, and pluses."""
    grid = make_grid(14, 14)
    grid = grid[hold_out(grid, 2, 11)]
    bumps = make_bumps(grid, 14)
    rows = bumps.max(axis=2, keepdims=True)
    columns = bumps.max(axis=1, keepdims=True)

    for images, hits in (
        (bumps, 1),
        (1e-9 * bumps, 0),
        (rows + columns, 0),
    ):
        numbers = score(images[..., None], bumps[..., None], grid)

        assert numbers["position_accuracy"] == 1
        assert numbers["hit_rate"] == hits


FIRST = make_bump(2, 3)
SECOND = make_bump(8, 9)
TWO = FIRST + SECOND


def make_dots(column: int, between: float = 0.0) -> Array:
    dots = np.zeros((SIZE, SIZE))
    dots[2, 4] = between
    dots[2, 2] = 1
    dots[2, column] = 0.9
    return dots


@pytest.mark.parametrize(
    "image, count",
    [
        (TWO, 2),
        (0.2 * TWO, 2),  # faint, as many superpositions are
        (0.01 * TWO, 0),  # ripple
        (5e-4 * TWO, 0),  # noise
        (0 * TWO, 0),
        (100 * FIRST + SECOND, 1),
        (FIRST + 0.51 * SECOND, 2),
        (FIRST + 0.49 * SECOND, 1),
        # Ripples on one bump are one peak; dots 3 px apart are two.
        (make_dots(4), 1),
        (make_dots(5), 2),
        (make_dots(7, 0.8), 2),  # hides behind both
    ],
)
def test_number_of_peaks_of_an_image_by_its_own_height(image, count, polarity):
    images = to_polarity(image[None], polarity)
    counts = scores.count_own_peaks(images, polarity)
    assert counts.tolist() == [count]


def test_the_least_height_of_a_peak(polarity):
    images = to_polarity(0.06 * TWO[None], polarity)

    counts = []
    for height in (0.1, 0.05):
        peaks = scores.count_own_peaks(images, polarity, height)
        counts += peaks.tolist()

    assert counts == [0, 2]


def count_slowly(image: Array) -> int:
    """Looks at every plateau above 0.5 for a higher neighbor."""
    near = np.ones((3, 3))
    num_peaks = 0
    for level in np.unique(image[image > 0.5]):
        plateaus, count = ndimage.label(image == level, near)
        for label in range(1, count + 1):
            plateau = plateaus == label
            around = ndimage.binary_dilation(plateau, near)
            num_peaks += image[around].max() == level
    return num_peaks


@pytest.mark.parametrize("num_levels", [3, 5, 1000])
def test_number_of_peaks_equals_a_flood(num_levels, polarity, rng):
    # Few levels make plateaus, many make single peaks; those of one image do
    # not join those at the same place of the next.
    levels = np.linspace(0, 1, num_levels)
    bright = rng.choice(levels, size=(30, 6, 9))
    images = to_polarity(bright, polarity)

    counts = scores.count_peaks(images, polarity)

    expected = [count_slowly(image) for image in bright]
    assert counts.tolist() == expected


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_diverged_model_is_never_right(value, polarity):
    positions = np.array([(0, 0), (4, 7)])
    bumps = make_bumps(positions, SIZE)
    truth = to_polarity(bumps, polarity)
    images = truth.copy()
    images[0, 3, 3] = value

    numbers = score(images, truth, positions, polarity)
    counts = scores.count_peaks(images, polarity)
    own_counts = scores.count_own_peaks(images, polarity)

    assert_array_equal(counts, [0, 1])
    assert_array_equal(own_counts, [np.nan, 1])
    assert numbers == {
        "mse": None,
        "relative_mse": None,
        "r2": None,
        "hit_rate": 0.5,
        "position_accuracy": 0.5,
        "position_error": None,
        "num_peaks": 0.5,
    }
