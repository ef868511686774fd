"""Scores against plain loops, on good, bad and degenerate images."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from tfcomp.metrics import scores as metrics
from tfcomp.metrics.point_scores import compute_ssim_error

SIZE = 12
DARK = "dark"


@pytest.fixture(params=["bright", DARK])
def polarity(request: pytest.FixtureRequest) -> str:
    return request.param


def draw_bump(x: float, y: float) -> np.ndarray:
    """Draws one bump on black, `[row = y, column = x]`."""
    row, column = np.indices((SIZE, SIZE))
    return np.exp(-((column - x) ** 2 + (row - y) ** 2) / 2)


def to_polarity(bright: np.ndarray, polarity: str) -> np.ndarray:
    return bright if polarity == "bright" else 1 - bright


def count_peaks_slowly(image: np.ndarray) -> int:
    """Looks at every plateau above 0.5 for a higher neighbor."""
    near = np.ones((3, 3))
    num_peaks = 0
    for level in np.unique(image[image > 0.5]):
        plateaus, count = ndimage.label(image == level, near)
        for label in range(1, count + 1):
            around = ndimage.binary_dilation(plateaus == label, near)
            num_peaks += image[around].max() == level
    return num_peaks


def compute_mse(images: np.ndarray, truth: np.ndarray) -> float:
    return metrics.compute_mse_per_image(images, truth).mean()


def compute_scores(*arguments: Any) -> dict[str, float | None]:
    return metrics.average_scores(metrics.score_images(*arguments))


def compute_errors(images: np.ndarray, *arguments: Any) -> np.ndarray:
    blank = np.zeros_like(images)
    return metrics.score_images(images, blank, *arguments)["position_error"]


def compute_accuracy(images: np.ndarray, *arguments: Any) -> float:
    scores = metrics.score_images(images, np.zeros_like(images), *arguments)
    return scores["position_accuracy"].mean()


def test_mse_equals_a_plain_loop(rng: np.random.Generator) -> None:
    images, truth = rng.random((2, 3, 4, 5)).astype(np.float32)
    expected = np.zeros(3)
    for n, row, column in np.ndindex(3, 4, 5):
        error = float(images[n, row, column]) - float(truth[n, row, column])
        expected[n] += error**2 / 20
    per_image = metrics.compute_mse_per_image(images, truth)
    np.testing.assert_allclose(per_image, expected)
    mean = pytest.approx(sum(expected) / 3)
    assert compute_mse(images, truth) == mean
    assert compute_mse(images[..., None], truth) == mean
    with pytest.raises(ValueError, match="same size"):  # it is not broadcast
        compute_mse(images, truth[:1])


def test_channels_count_as_pixels_and_peaks_are_of_their_mean(
    rng: np.random.Generator,
) -> None:
    images, truth = rng.random((2, 4, 3, 5, 3))
    mean = truth.mean(axis=0)
    error = ((images - truth) ** 2).mean()
    assert compute_mse(images, truth) == pytest.approx(error)
    scores = compute_scores(images, truth, None, "bright", mean)
    expected = error / ((mean - truth) ** 2).mean()
    assert scores["relative_mse"] == pytest.approx(expected)
    np.testing.assert_array_equal(
        metrics.compute_peaks(images, "bright"),
        metrics.compute_peaks(images.mean(axis=-1), "bright"),
    )


def test_ssim_equals_its_definition(rng: np.random.Generator) -> None:
    images, truth = rng.random((2, 3, 13, 12, 2)).astype(np.float32)
    truth[1], images[2] = images[1], 1 - truth[2]
    row, column = np.mgrid[-5:6, -5:6]
    window = np.exp(-(row**2 + column**2) / (2 * 1.5**2))
    window /= window.sum()
    expected = np.zeros(3)
    for n, i, j, channel in np.ndindex(3, 3, 2, 2):
        place = n, slice(i, i + 11), slice(j, j + 11), channel
        a, b = images[place].astype(float), truth[place].astype(float)
        mean_a, mean_b = (window * a).sum(), (window * b).sum()
        spread = (window * ((a - mean_a) ** 2 + (b - mean_b) ** 2)).sum()
        shared = (window * (a - mean_a) * (b - mean_b)).sum()
        level = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
        expected[n] += level * (2 * shared + 9e-4) / (spread + 9e-4) / 12
    found = compute_ssim_error(images, truth)
    np.testing.assert_allclose(found, 1 - expected, atol=1e-5)
    assert found[1] == pytest.approx(0, abs=1e-6) and 1 < found[2] < 2
    images[0, 4, 4] = np.nan
    assert np.isnan(compute_ssim_error(images, truth)).tolist() == [1, 0, 0]


def test_relative_mse(polarity: str) -> None:
    def compute(images: np.ndarray, truth: np.ndarray) -> float | None:
        scores = compute_scores(images, truth, None, polarity)
        return scores["relative_mse"]

    background = 0.0 if polarity == "bright" else 1.0
    truth = to_polarity(np.stack([draw_bump(3, 8), draw_bump(5, 5)]), polarity)
    blank = np.full_like(truth, background)
    halfway = (truth + blank) / 2
    for images, expected in ((truth, 0), (blank, 1), (halfway, 0.25)):
        assert compute(images, truth) == pytest.approx(expected)
    wrong = to_polarity(draw_bump(9, 1), polarity)[None].repeat(2, axis=0)
    assert compute(wrong, truth) > 1.5
    assert compute(wrong, blank) is None


def test_peaks_are_x_then_y(polarity: str) -> None:
    positions = [(2, 9), (9, 2), (0, 11), (11, 0), (0, 0), (11, 11), (5, 6)]
    images = np.stack([draw_bump(x, y) for x, y in positions])
    peaks = metrics.compute_peaks(to_polarity(images, polarity), polarity)
    np.testing.assert_array_equal(peaks, positions)


def test_position_of_swapped_axes_is_wrong(polarity: str) -> None:
    image = to_polarity(draw_bump(2, 9), polarity)[None]
    for position, error, accuracy in (
        ((2, 9), 0, 1),
        ((9, 2), 7 * math.sqrt(2), 0),
        ((3, 8), math.sqrt(2), 1),
        ((3.01, 9), 1.01, 0),
        ((2, 7.5), 1.5, 0),
        ((2.6, 8.4), math.hypot(0.6, 0.6), 1),
    ):
        arguments = (image, [position], polarity)
        np.testing.assert_allclose(
            compute_errors(*arguments), [error], atol=1e-12
        )
        assert compute_accuracy(*arguments) == accuracy


def test_absent_coordinate_is_ignored() -> None:
    stripe = np.zeros((1, SIZE, SIZE))
    stripe[0, :, 4] = 1
    for x, error in ((4, 0), (7, 3)):
        errors = compute_errors(stripe, [(x, np.nan)], "bright")
        np.testing.assert_array_equal(errors, [error])
    no_position = [(np.nan, np.nan)]
    assert compute_accuracy(stripe, no_position, "bright") == 0


def test_blank_image_is_nowhere_right(polarity: str) -> None:
    blank = to_polarity(np.zeros((1, SIZE, SIZE)), polarity)
    for place in np.ndindex(SIZE, SIZE):
        assert compute_accuracy(blank, [place], polarity) == 0
    assert metrics.count_peaks(blank, polarity).tolist() == [0]


def test_number_of_peaks_of_an_image_by_its_own_measure(polarity: str) -> None:
    two = draw_bump(2, 3) + draw_bump(8, 9)
    cases = (
        (two, 2),
        (0.2 * two, 2),  # faint, as many superpositions are
        (0.01 * two, 0),  # ripple
        (5e-4 * two, 0),  # noise
        (0 * two, 0),
        (100 * draw_bump(2, 3) + draw_bump(8, 9), 1),
        (draw_bump(2, 3) + 0.51 * draw_bump(8, 9), 2),
        (draw_bump(2, 3) + 0.49 * draw_bump(8, 9), 1),
    )
    # Ripples on one bump are one peak; dots 3 px apart are two.
    dots = np.zeros((3, SIZE, SIZE))
    for image, column in zip(dots, (4, 5, 7), strict=True):
        image[2, [2, column]] = 1, 0.9
    dots[2, 2, 4] = 0.8  # hides behind the first, from the second as well
    cases += tuple(zip(dots, (1, 2, 2), strict=True))
    images = to_polarity(np.stack([image for image, _ in cases]), polarity)
    expected = [count for _, count in cases]
    assert metrics.count_own_peaks(images, polarity).tolist() == expected


@pytest.mark.parametrize("num_levels", [3, 5, 1000])
def test_number_of_peaks_equals_a_flood(
    rng: np.random.Generator, num_levels: int
) -> None:
    # Few levels make plateaus, many make single peaks; those of one image do
    # not join those at the same place of the next.
    images = rng.integers(0, num_levels, (60, 6, 9)) / (num_levels - 1)
    expected = [count_peaks_slowly(image) for image in images]
    assert metrics.count_peaks(images, "bright").tolist() == expected
    assert metrics.count_peaks(1 - images, DARK).tolist() == expected
    assert sum(expected) > 60


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_diverged_model_is_never_right(value: float, polarity: str) -> None:
    truth = to_polarity(np.stack([draw_bump(0, 0), draw_bump(4, 7)]), polarity)
    positions = [(0, 0), (4, 7)]
    images = truth.copy()
    images[0, 3, 3] = value
    arguments = (images, positions, polarity)
    errors = compute_errors(*arguments)
    np.testing.assert_array_equal(errors, [np.nan, 0])
    assert compute_accuracy(*arguments) == 0.5
    assert metrics.count_peaks(images, polarity).tolist() == [0, 1]
    counts = metrics.count_own_peaks(images, polarity)
    np.testing.assert_array_equal(counts, [np.nan, 1])
    assert compute_scores(images, truth, positions, polarity) == {
        "mse": None,
        "relative_mse": None,
        "r2": None,
        "hit_rate": 0.5,
        "position_accuracy": 0.5,
        "position_error": None,
        "num_peaks": 0.5,
    }
