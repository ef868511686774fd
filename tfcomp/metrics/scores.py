"""Scores images against the truth.

Images are `[n, H, W, C]` with `image[row = y, column = x]`; positions are
`[n, 2]` in pixels, in the order (x, y). Peaks are found in the mean over
channels. The background of a `bright` image is 0, of a `dark` one 1; a bump has
height 1.

An image that is not finite has no peak: its position is never right, its number
of peaks is 0, and mean errors are None.

`evaluate_images` scores a model at all points of a dataset, ID and OOD apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array
from scipy import ndimage

from tfcomp.config.process import show_progress
from tfcomp.metrics.registry import (
    Arrays,
    ImageView,
    Scores,
    compute_image_metrics,
    computes,
    finite_or_none,
    mean_or_none,
    median_or_none,
)
from tfcomp.statistics.limits import AT_MOST_ONE, POSITIVE, SHARE, Limits

if TYPE_CHECKING:
    from tfcomp.datasets.dataset import Dataset, Render
    from tfcomp.metrics.run_analysis import RunAnalysis

# From points [n, F] to images [n, H, W, C].
Predict = Callable[[Array], Array]

BACKGROUNDS = {
    "bright": 0.0,
    "dark": 1.0,
}
POSITION_TOLERANCE = 1.0  # px, in each axis
PEAK_THRESHOLD = 0.5  # half of the height of a bump
PEAK_DISTANCE = 3.0  # px, between the peaks of a superposition
FAINT = 0.1  # of the height of a bump: the least height of an own peak
# Other least heights at which own peaks are counted: the paper names none.
PEAK_HEIGHTS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
# Share of the error of the reference: an image that is further off is no hit.
HIT_ERROR = 0.5
TINY = 1e-9  # share of a variance that rounding leaves of equal images
BLOCK = 1024  # points that are scored at a time

_BLOCK = 64  # images that are compared at a time
# Neighbors over [n, H, W]; connections never join two images.
_NEIGHBORS = (1, 3, 3)
_CONNECTED = np.zeros((3, 3, 3), bool)
_CONNECTED[1] = True


def compute_mse_per_image(images: Array, truth: Array) -> Array:
    """Computes the squared error of each image, `[n]`.

    Args:
        images: Outputs of a model, `[n, H, W, C]`.
        truth: True images of the same size.

    Returns:
        Means over pixels and channels.
    """
    error = np.zeros(len(images))
    # In blocks: double copies of all images would fill memory.
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        # NumPy reuses the memory of an array without a name, whose order
        # decides the last bits of the mean.
        difference = np.asarray(images[block], float) - truth[block]
        error[block] = np.mean(difference**2, axis=(1, 2, 3))
    return error


def compute_mse(
    dataset: Dataset,
    factors: Array,
    images: Array,
    truth: Array,
) -> Array:
    """Computes the MSE at points, [n]; a mean over images of a combination.

    Args:
        dataset: Knows if a combination has several images.
        factors: The points, [n, F].
        images: Outputs, [n, H, W, C], or one for all points, [H, W, C].
        truth: True images, [n, H, W, C].
    """
    outputs = np.broadcast_to(images, truth.shape)
    if dataset.compare is not None:
        error, _ = dataset.compare(factors, outputs)
        return error
    return compute_mse_per_image(outputs, truth)


def compute_peaks(images: Array, polarity: str) -> Array:
    """Finds the first extreme pixel of each image.

    Args:
        images: `[n, H, W, C]`.
        polarity: `bright` or `dark`.

    Returns:
        Places (x, y) in pixels, `[n, 2]`; NaN for an image that is not finite.
    """
    bright = _to_bright(images, polarity)
    _, height, width = bright.shape
    flat = bright.reshape(-1, height * width)
    row, column = np.divmod(flat.argmax(axis=1), width)
    peaks = np.stack([column, row], axis=1)  # [n, 2]

    is_finite = np.isfinite(flat).all(axis=1, keepdims=True)
    return np.where(is_finite, peaks, np.nan)


def count_peaks(images: Array, polarity: str) -> Array:
    """Counts the local extrema above half of the height of a bump, `[n]`.

    Extrema have eight neighbors; a plateau of equal pixels counts once.

    Args:
        images: `[n, H, W, C]`.
        polarity: `bright` or `dark`.
    """
    bright = _to_bright(images, polarity)
    threshold = np.full(len(bright), PEAK_THRESHOLD)
    peaks = _find_peaks(bright, threshold)
    image, *_ = np.unravel_index(peaks, bright.shape)
    return np.bincount(image, minlength=len(bright))


def count_own_peaks(
    images: Array,
    polarity: str,
    least_height: float = FAINT,
) -> Array:
    """Counts peaks relative to each image, `[n]`.

    Local extrema above half of the image's largest value and above the least
    height, the highest first, each at least `PEAK_DISTANCE` from those before
    it.

    Args:
        images: `[n, H, W, C]`.
        polarity: `bright` or `dark`.
        least_height: Of a peak; a bump has 1.

    Returns:
        Counts; NaN for an image that is not finite.
    """
    bright = _to_bright(images, polarity)
    is_finite = np.isfinite(bright).all(axis=(1, 2))
    highest = bright.max(axis=(1, 2), initial=0.0)
    threshold = PEAK_THRESHOLD * highest
    threshold = np.maximum(threshold, least_height)
    peaks = _find_peaks(bright, threshold)

    # The highest of an image first, which are stable in the order of pixels.
    heights = bright.ravel()[peaks]
    order = np.argsort(-heights, kind="stable")
    image, row, column = np.unravel_index(peaks[order], bright.shape)
    place = np.stack([row, column], axis=1)  # [peaks, 2]

    counts = np.zeros(len(bright), np.int64)
    while len(image):
        left, first = np.unique(image, return_index=True)
        counts[left] += 1
        highest_peak = first[np.searchsorted(left, image)]
        steps = place - place[highest_peak]
        distance = np.linalg.norm(steps, axis=1)
        is_apart = distance >= PEAK_DISTANCE
        image = image[is_apart]
        place = place[is_apart]
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
    images: Array,
    truth: Array,
    positions: Array | None,
    polarity: str,
    reference: Array | float,
) -> Arrays:
    """Scores every image, for `average_scores`, `[n]` by name.

    Args:
        images: Outputs of a model, `[n, H, W, C]`.
        truth: True images of the same shape.
        positions: Of the true peaks, `[n, 2]`; None skips their scores.
        polarity: `bright` or `dark`.
        reference: The image that the relative MSE refers to, `[H, W, C]`, or
            the value of all its pixels.
    """
    blank = np.broadcast_to(reference, np.shape(truth))
    scores = {
        "mse": compute_mse_per_image(images, truth),
        "blank_mse": compute_mse_per_image(blank, truth),
    }
    if positions is None:
        return scores

    offsets = _measure_offsets(images, np.asarray(positions), polarity)
    is_close = (np.abs(offsets) <= POSITION_TOLERANCE).all(axis=1)
    # All pixels of a constant image tie, so that its "peak" is pixel (0, 0).
    bright = _to_bright(images, polarity)
    varies = np.ptp(bright, axis=(1, 2)) > 0
    is_right = is_close & varies
    is_near = scores["mse"] < HIT_ERROR * scores["blank_mse"]
    x, y = offsets.T
    scores["hit_rate"] = is_right & is_near
    scores["position_accuracy"] = is_right
    scores["position_error"] = np.hypot(x, y)
    scores["num_peaks"] = count_peaks(images, polarity)
    return scores


def _measure_offsets(images: Array, positions: Array, polarity: str) -> Array:
    """Measures how far peaks are from true positions, `[n, 2]`, in pixels."""
    peaks = compute_peaks(images, polarity)
    # The truth may have one coordinate alone, as a stripe has.
    has_peak = ~np.isnan(peaks)
    is_absent = np.isnan(positions) & has_peak
    has_none = is_absent.all(axis=1, keepdims=True)
    is_absent &= ~has_none
    offsets = peaks - positions
    return np.where(is_absent, 0.0, offsets)


def average_scores(
    each: Mapping[str, Array],
    offset: float,
) -> Scores:
    """Averages scores over images (`score_images`).

    Args:
        each: Scores of every image by name, [n].
        offset: MSE between the mean true image and the reference.

    Returns:
        Means by name, with `relative_mse` and `r2`; None for a number that
        does not exist.
    """
    means = {}
    for name, values in each.items():
        numbers = np.asarray(values, float)
        means[name] = mean_or_none(numbers)
    error = means["mse"]
    blank = means.pop("blank_mse")

    scores: Scores = {
        "mse": error,
        "relative_mse": None,
        "r2": None,
    }
    if error is not None and blank:
        ratio = error / blank
        scores["relative_mse"] = finite_or_none(ratio)
        # The mean squared distance from the reference, less the mean's own.
        variance = blank - offset
        if variance > TINY * blank:
            r2 = 1 - error / variance
            scores["r2"] = finite_or_none(r2)
    names = ("hit_rate", "position_accuracy", "position_error", "num_peaks")
    scores |= dict.fromkeys(names)
    return scores | means


def _find_peaks(bright: Array, threshold: Array) -> Array:
    """Finds the first pixels of maxima above thresholds.

    Args:
        bright: Images `[n, H, W]`; one that is not finite is set to zero.
        threshold: Least height of a peak of each image, `[n]`.

    Returns:
        Places in the flattened images, in the order of their tops.
    """
    is_finite = np.isfinite(bright).all(axis=(1, 2))
    bright[~is_finite] = 0.0
    highest = ndimage.maximum_filter(bright, _NEIGHBORS)
    is_high = bright > threshold[:, None, None]
    is_top = is_high & (bright == highest)
    labels, num_labels = ndimage.label(is_top, _CONNECTED)

    # No neighbor of a top is higher, but a neighbor of an equally high one may
    # be: such a plateau is a step on a slope (a shoulder) and no peak.
    others = np.where(is_top, -np.inf, bright)
    beside = ndimage.maximum_filter(others, _NEIGHBORS)
    is_shoulder = is_top & (beside == bright)
    is_peak = np.ones(num_labels + 1, bool)
    is_peak[labels[is_shoulder]] = False
    is_peak[0] = False  # the label of all other pixels

    pixels = np.flatnonzero(is_top)
    top_labels = labels[is_top]
    tops, first = np.unique(top_labels, return_index=True)
    first = first[is_peak[tops]]
    return pixels[first]


def _to_bright(images: Array, polarity: str) -> Array:
    """Copies images as bumps of 1 on a background of 0, `[n, H, W]`."""
    maps = np.asarray(images, float).mean(axis=-1)
    contrast = maps - BACKGROUNDS[polarity]
    if polarity == "bright":
        return contrast
    return -contrast


@dataclass(frozen=True)
class Evaluation:
    """Outputs and truth over the grid [n, H, W, C], and scores of subsets."""

    images: Array
    truth: Array
    scores: dict[str, Scores]

    @property
    def tagged(self) -> Scores:
        """Scores by their names in TensorBoard, as `ood/mse`."""
        tagged = {}
        for subset, values in self.scores.items():
            for name, value in values.items():
                tagged[f"{subset}/{name}"] = value
        return tagged


def evaluate_images(
    dataset: Dataset,
    predict: Predict,
    images: Array,
) -> Evaluation:
    """Scores all scored points.

    Args:
        dataset: Has the points and true images.
        predict: The model. It is asked where more points are scored than the
            grid has.
        images: Its images over the grid, [n, H, W, C].
    """
    truth = dataset.grid_images
    grid_images: Array | None = images
    grid_truth: Array | None = truth
    if dataset.splits.is_streamed:
        grid_images = None
        grid_truth = None

    subsets = dataset.subsets
    scores = _score_subsets(
        dataset,
        predict,
        subsets,
        grid_images,
        grid_truth,
    )
    for name, render in dataset.other_truths.items():
        named = {}
        for key in ("id", "ood"):
            named[f"{key}_{name}"] = subsets[key]
        scores |= _score_subsets(
            dataset,
            predict,
            named,
            grid_images,
            render=render,
        )
    return Evaluation(images, truth, scores)


def _score_subsets(
    dataset: Dataset,
    predict: Predict,
    subsets: Mapping[str, Array],
    images: Array | None,
    truth: Array | None = None,
    render: Render | None = None,
) -> dict[str, Scores]:
    """Scores the points of a split, block by block, and averages.

    Args:
        dataset: Has the scored points.
        predict: The model.
        subsets: Masks of scored points by name.
        images: Outputs at all scored points; None computes them.
        truth: True images at all scored points; None renders them.
        render: Renders other true images.

    Returns:
        Means by subset and name.
    """
    scored = dataset.splits.scored
    reference = np.asarray(dataset.reference)
    num_points = len(scored.factors)
    starts: Iterable[int] = range(0, num_points, BLOCK)
    if images is None:  # which may take long
        num_blocks = -(-num_points // BLOCK)
        starts = show_progress(
            starts,
            "scores",
            "block",
            num_blocks,
        )

    blocks = []
    sums = {}  # of true images, less the reference
    for name in subsets:
        sums[name] = np.zeros(dataset.image_shape)
    for start in starts:
        rows = slice(start, start + BLOCK)
        points = scored.factors[rows]
        if images is None:
            outputs = predict(points)
        else:
            outputs = images[rows]
        if truth is None:
            targets = dataset.render_array(points, render)
        else:
            targets = truth[rows]

        is_ood = scored.is_ood[rows]
        block = score_points(
            dataset,
            outputs,
            targets,
            points,
            is_ood,
        )
        blocks.append(block)
        for name, mask in subsets.items():
            is_in = mask[rows]
            total = targets[is_in].sum(axis=0, dtype=np.float64)
            sums[name] += total - is_in.sum() * reference

    joined = {}
    for name in blocks[0]:
        joined[name] = np.concatenate([block[name] for block in blocks])
    return _average_subsets(joined, subsets, sums)


def _average_subsets(
    each: Arrays,
    subsets: Mapping[str, Array],
    sums: Mapping[str, Array],
) -> dict[str, Scores]:
    """Averages scores over subsets.

    Args:
        each: Scores of every point by name, [n].
        subsets: Masks of points by name, [n].
        sums: By subset, the sum of true images less the reference.
    """
    scores = {}
    for name, mask in subsets.items():
        mean = sums[name] / max(mask.sum(), 1)
        offset = float(np.mean(mean**2))
        values = {key: numbers[mask] for key, numbers in each.items()}
        scores[name] = average_scores(values, offset)
    return scores


def score_points(
    dataset: Dataset,
    images: Array,
    truth: Array,
    factors: Array,
    is_ood: Array,
) -> Arrays:
    """Scores images at points, [n] by name.

    Args:
        dataset: Has the reference image.
        images: Outputs of a model, [n, H, W, C].
        truth: True images, [n, H, W, C].
        factors: The points, [n, F].
        is_ood: Which are held out, [n].
    """
    positions = None
    if dataset.has_position:
        positions = factors
    scores = score_images(
        images,
        truth,
        positions=positions,
        polarity=dataset.polarity,
        reference=dataset.reference,
    )
    compare = dataset.compare
    if compare is not None:  # several images for a combination
        blank = np.broadcast_to(dataset.reference, truth.shape)
        error, deviation = compare(factors, images)
        floor, _ = compare(factors, truth)
        blank_error, _ = compare(factors, blank)
        scores["mse"] = error
        scores["mse_sd"] = deviation
        scores["floor_mse"] = floor
        scores["blank_mse"] = blank_error

    view = ImageView(
        images=images,
        truth=truth,
        factors=factors,
        is_ood=is_ood,
    )
    return scores | compute_image_metrics(view)


def compute_both_mse(
    dataset: Dataset,
    points: Array,
    images: Array,
    truth: Array,
) -> tuple[Array, Array]:
    """Computes the MSE of predictions and of `Dataset.reference`, [n] each.

    Args:
        dataset: Has the reference image.
        points: The points, [n, F].
        images: Predictions there, [n, H, W, C].
        truth: True images, [n, H, W, C].
    """
    error = compute_mse(dataset, points, images, truth)
    blank = compute_mse(dataset, points, dataset.reference, truth)
    return error, blank


def compute_error_ratio(
    dataset: Dataset,
    evaluation: Evaluation,
) -> Array:
    """Divides MSE by the MSE of `Dataset.reference`, at grid points, [n].

    Args:
        dataset: Has the reference.
        evaluation: Outputs and truth over its grid.
    """
    error, blank = compute_both_mse(
        dataset,
        dataset.splits.grid,
        evaluation.images,
        evaluation.truth,
    )
    return divide(error, blank)


def divide(
    values: Array,
    by: Array,
) -> Array:
    """Divides values; 0 / 0 is 0, and another value over 0 is infinite.

    Args:
        values: The numbers above the line.
        by: The numbers below it, of the same shape.
    """
    with np.errstate(
        invalid="ignore",
        divide="ignore",
    ):
        return np.where(values == 0, 0.0, values / by)


@computes(
    "run",
    Limits(0, 2),
    "ssim_error_id ssim_error_ood",
    better="low",
)
def measure_ssim(analysis: RunAnalysis) -> Scores:
    """Averages 1 - SSIM, which the published code reports beside the MSE."""
    if analysis.ssim_error is None:
        return {}

    numbers: Scores = {}
    for name, rows in analysis.subsets.items():
        error = mean_or_none(analysis.ssim_error[rows])
        numbers[f"ssim_error_{name}"] = error
    return numbers


@computes(
    "run",
    SHARE,
    "multiple_peaks_id multiple_peaks_ood no_peak_id no_peak_ood "
    "multiple_peaks_by_height_id multiple_peaks_by_height_ood",
)
@computes("run", names="peak_height_id peak_height_ood")
def measure_peaks(analysis: RunAnalysis) -> dict[str, Any]:
    """Counts images with several bumps, and with none (section 3.2)."""
    if not analysis.dataset.has_position:
        return {}

    images = analysis.evaluation.images
    polarity = analysis.dataset.polarity
    counts = count_own_peaks(images, polarity)
    curves = [count_own_peaks(images, polarity, h) for h in PEAK_HEIGHTS]
    bright = _to_bright(images, polarity)
    highest = bright.max(axis=(1, 2), initial=-np.inf)

    numbers: dict[str, Any] = {}
    for name, rows in analysis.subsets.items():
        peaks = counts[rows]
        shares = [_share(curve[rows] > 1, curve[rows]) for curve in curves]
        numbers[f"multiple_peaks_{name}"] = _share(peaks > 1, peaks)
        numbers[f"no_peak_{name}"] = _share(peaks == 0, peaks)
        numbers[f"multiple_peaks_by_height_{name}"] = shares
        numbers[f"peak_height_{name}"] = median_or_none(highest[rows])
    return numbers


def _share(
    is_counted: Array,
    counts: Array,
) -> float | None:
    """Computes the share of images that count; None if a count is NaN."""
    if np.isnan(counts).any():
        return None
    return mean_or_none(is_counted)
