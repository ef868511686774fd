"""Scores images against the truth.

Images are `[n, H, W, C]` or `[n, H, W]` with `image[row = y, column = x]`;
positions are `[n, 2]` in pixels, in the order (x, y). Peaks are found in the
mean over channels. The background of a `bright` image is 0, of a `dark` one 1;
a bump has height 1.

An image that is not finite has no peak: its position is never right, its number
of peaks is 0, and mean errors are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from tfcomp.metrics.features import Scores, finite_or_none, mean_or_none
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import AT_MOST_ONE, POSITIVE, SHARE, Limits

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

FloatArray = NDArray[np.float64]

BACKGROUNDS = {"bright": 0.0, "dark": 1.0}
POSITION_TOLERANCE = 1.0  # px, in each axis
PEAK_THRESHOLD = 0.5  # half of the height of a bump
PEAK_DISTANCE = 3.0  # px, between the peaks of a superposition
FAINT = 0.1  # of the height of a bump: the least height of an own peak
# Share of the error of the reference: an image that is further off is no hit.
HIT_ERROR = 0.5
TINY = 1e-9  # share of a variance that rounding leaves of equal images

_BLOCK = 64  # images that are compared at a time
# Neighbors over [n, H, W]; connections never join two images.
_NEIGHBORS = (1, 3, 3)
_CONNECTED = np.zeros((3, 3, 3), bool)
_CONNECTED[1] = True


def compute_mse_per_image(images: ArrayLike, truth: ArrayLike) -> FloatArray:
    """Returns the squared error, mean over pixels and channels, `[n]`."""
    images, truth = _drop_channel(images), _drop_channel(truth)
    if images.shape != truth.shape:
        sizes = f"{images.shape} and {truth.shape}"
        raise ValueError(f"images and truth must have the same size: {sizes}")
    error, axes = np.zeros(len(images)), tuple(range(1, images.ndim))
    # In blocks: double copies of all images would fill memory.
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        left = np.asarray(images[block], float) - truth[block]
        error[block] = np.mean(left**2, axis=axes)
    return error


def compute_peaks(images: ArrayLike, polarity: str) -> FloatArray:
    """Returns the first extreme pixels, `[n, 2]`; NaN if one is not finite."""
    bright = _to_bright(images, polarity)
    flat = bright.reshape(len(bright), bright.shape[1] * bright.shape[2])
    row, column = np.divmod(flat.argmax(axis=1), bright.shape[2])
    peaks = np.stack([column, row], axis=1).astype(float)  # [n, 2], (x, y)
    peaks[~np.isfinite(flat).all(axis=1)] = np.nan
    return peaks


def count_peaks(images: ArrayLike, polarity: str) -> NDArray[np.int64]:
    """Counts the local extrema above half of the height of a bump, `[n]`.

    Extrema have eight neighbors; a plateau of equal pixels counts once.
    """
    bright = _to_bright(images, polarity)
    peaks = _find_peaks(bright, np.full(len(bright), PEAK_THRESHOLD))
    image, *_ = np.unravel_index(peaks, bright.shape)
    return np.bincount(image, minlength=len(bright))


def count_own_peaks(images: ArrayLike, polarity: str) -> FloatArray:
    """Counts peaks relative to each image; NaN for one that is not finite.

    Local extrema above half of the image's largest value and above `FAINT` of a
    bump, the highest first, each at least `PEAK_DISTANCE` from those before it.
    """
    bright = _to_bright(images, polarity)
    is_finite = np.isfinite(bright).all(axis=(1, 2))
    highest = bright.max(axis=(1, 2), initial=0.0)
    threshold = np.maximum(PEAK_THRESHOLD * highest, FAINT)
    peaks = _find_peaks(bright, threshold)
    # The highest of an image first, which are stable in the order of pixels.
    peaks = peaks[np.argsort(-bright.reshape(-1)[peaks], kind="stable")]
    image, *axes = np.unravel_index(peaks, bright.shape)
    place = np.stack(axes, axis=1)  # [peaks, 2]
    counts = np.zeros(len(bright), np.int64)
    while len(image):
        shown, first = np.unique(image, return_index=True)
        counts[shown] += 1
        top = place[first[np.searchsorted(shown, image)]]
        is_apart = np.linalg.norm(place - top, axis=1) >= PEAK_DISTANCE
        image, place = image[is_apart], place[is_apart]
    return np.where(is_finite, counts, np.nan)


@computes(
    "image",
    POSITIVE,
    better="low",
    mse="MSE: squared error, mean over pixels and channels",
)
@computes(
    "image",
    POSITIVE,
    better="low",
    is_leading=True,
    relative_mse="relative MSE: the mean MSE over the mean MSE of a reference, "
    "which metrics.json names: a blank image if the data declare a constant "
    "ground, else the mean training image; 1 is no better than the reference",
)
@computes(
    "image",
    AT_MOST_ONE,
    better="high",
    r2="R²: 1 less the mean MSE over the variance of the true images, about "
    "their mean over the same points",
)
@computes(
    "image",
    SHARE,
    better="high",
    is_leading=True,
    hit_rate="hit rate: share of the images whose peak lies within 1 px of the "
    "truth in x and in y and whose MSE is less than half of the reference's",
)
@computes(
    "image",
    SHARE,
    better="high",
    position_accuracy="position accuracy: share of the images whose peak, "
    "however faint, lies within 1 px of the truth in x and in y",
)
@computes(
    "image",
    POSITIVE,
    better="low",
    unit="px",
    position_error="position error: distance of the peak from the truth",
)
@computes(
    "image",
    POSITIVE,
    num_peaks="number of peaks: number of local extrema above half the height "
    "of a bump",
)
def score_images(
    images: ArrayLike,
    truth: ArrayLike,
    positions: ArrayLike | None,
    polarity: str,
    reference: ArrayLike | None = None,
) -> dict[str, FloatArray]:
    """Scores every image, for `average_scores`, `[n]` by name.

    Args:
        images: Outputs of a model, `[n, H, W, C]` or `[n, H, W]`.
        truth: True images of the same shape.
        positions: Of the true peaks, `[n, 2]`; None skips their scores.
        polarity: `bright` or `dark`.
        reference: The image that relative errors refer to, `[H, W, C]`, or
            the value of all its pixels; by default the background.
    """
    blank = BACKGROUNDS[polarity] if reference is None else reference
    blank = np.broadcast_to(blank, np.shape(truth))
    scores = {
        "mse": compute_mse_per_image(images, truth),
        "blank_mse": compute_mse_per_image(blank, truth),
    }
    if positions is None:
        return scores
    peaks, positions = compute_peaks(images, polarity), np.asarray(positions)
    is_absent = np.isnan(positions) & ~np.isnan(peaks)
    is_absent &= ~is_absent.all(axis=1, keepdims=True)
    offsets = np.where(is_absent, 0.0, peaks - positions)
    is_close = (np.abs(offsets) <= POSITION_TOLERANCE).all(axis=1)
    # All pixels of a constant image tie, so that its "peak" is pixel (0, 0).
    is_right = is_close & (np.ptp(_to_bright(images, polarity), (1, 2)) > 0)
    is_near = scores["mse"] < HIT_ERROR * scores["blank_mse"]
    return scores | {
        "hit_rate": is_right & is_near,
        "position_accuracy": is_right,
        "position_error": np.hypot(offsets[:, 0], offsets[:, 1]),
        "num_peaks": count_peaks(images, polarity),
    }


def average_scores(
    each: Mapping[str, ArrayLike], offset: float | None = None
) -> Scores:
    """Averages `score_images` over images, [n] by name.

    `r2` takes the offset: MSE between the mean true image and the reference.
    """
    means = {n: mean_or_none(np.asarray(v, float)) for n, v in each.items()}
    error, blank = means["mse"], means.pop("blank_mse")
    scores = {"mse": error, "relative_mse": None, "r2": None}
    if error is not None and blank:
        scores["relative_mse"] = finite_or_none(error / blank)
        # The mean squared distance from the reference, less the mean's own.
        variance = 0.0 if offset is None else blank - offset
        if variance > TINY * blank:
            scores["r2"] = finite_or_none(1 - error / variance)
    names = ("hit_rate", "position_accuracy", "position_error", "num_peaks")
    return scores | dict.fromkeys(names) | means


def _find_peaks(bright: FloatArray, threshold: FloatArray) -> NDArray:
    """Returns first pixels of maxima above thresholds, in flattened images."""
    bright[~np.isfinite(bright).all(axis=(1, 2))] = 0.0
    highest = ndimage.maximum_filter(bright, _NEIGHBORS)
    is_top = (bright == highest) & (bright > threshold[:, None, None])
    labels, num_labels = ndimage.label(is_top, _CONNECTED)
    # No neighbor of a top is higher, but a neighbor of an equally high one may
    # be: such a plateau is a step on a slope (a shoulder) and no peak.
    others = np.where(is_top, -np.inf, bright)
    beside = ndimage.maximum_filter(others, _NEIGHBORS)
    is_peak = np.ones(num_labels + 1, bool)
    is_peak[labels[is_top & (beside == bright)]] = False
    is_peak[0] = False  # the label of all other pixels
    pixels = np.flatnonzero(is_top)
    tops, first = np.unique(labels[is_top], return_index=True)
    return pixels[first[is_peak[tops]]]


def _drop_channel(images: ArrayLike) -> NDArray[Any]:
    images = np.asarray(images)
    return images[..., 0] if images.shape[3:] == (1,) else images


def _to_bright(images: ArrayLike, polarity: str) -> FloatArray:
    """Returns a copy, `[n, H, W]`, with bumps of 1 on a background of 0."""
    stack = np.asarray(_drop_channel(images), float)
    gray = stack.mean(axis=-1) if stack.ndim == 4 else stack
    sign = 1.0 if polarity == "bright" else -1.0
    return sign * (gray - BACKGROUNDS[polarity])


@computes("run", Limits(0, 2), "ssim_error_id ssim_error_ood", better="low")
def measure_ssim(analysis: RunAnalysis) -> Scores:
    """Averages 1 - SSIM, which the published code reports beside the MSE."""
    if analysis.ssim_error is None:
        return {}
    return {
        f"ssim_error_{name}": mean_or_none(analysis.ssim_error[rows])
        for name, rows in analysis.subsets.items()
    }


@computes(
    "run", SHARE, "multiple_peaks_id multiple_peaks_ood no_peak_id no_peak_ood"
)
def measure_peaks(analysis: RunAnalysis) -> Scores:
    """Counts images with several bumps, and with none (section 3.2)."""
    if not analysis.dataset.has_position:
        return {}
    images = analysis.evaluation.images
    counts = count_own_peaks(images, analysis.dataset.polarity)
    numbers: Scores = {}
    for name, rows in analysis.subsets.items():
        peaks = counts[rows]
        unknown = np.where(np.isfinite(peaks), 0.0, np.nan)
        numbers[f"multiple_peaks_{name}"] = mean_or_none((peaks > 1) + unknown)
        numbers[f"no_peak_{name}"] = mean_or_none((peaks == 0) + unknown)
    return numbers
