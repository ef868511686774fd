"""Predicts held-out outputs from ID outputs: edges of a gap, and kernels.

Edges of a gap (appendix F.2 of the paper, figure 9). For an output o at the
fraction t of the gap and the edge images a and b, the last ones before and
after the gap:

    r2          of o on a and b, the best weights (least squares)
    linear_r2   of o as (1 - t) a + t b, the weights of the claim
    truth_r2    of the true image on a and b, which overlap

R^2 = 1 - SSE / SST with SST about zero and no intercept. A copy of the nearest
edge has an R^2 of 1, too. What tells a blend is

    weight_r2   of the best weights on (1 - t, t), over all held-out points

about the mean of these, 1/2: 1 for a linear blend, about 0 for copies of the
nearest edge, below 0 for copies of one edge.

Kernel regression (section 3.3, appendix A.4) interpolates and extrapolates over
the factors in three ways, with distances t_f along a factor f in units of its
length scale:

    additive   k = mean over factors of exp(-t_f^2 / 2)
    product    k = product over factors of exp(-t_f^2 / 2)
    radial     k = (1 + sqrt(3) r) exp(-sqrt(3) r),   r^2 = sum of t_f^2

The additive kernel superposes knowledge of x and knowledge of y; the product
kernel needs both to be close; the radial one (Matern 3/2, one length scale)
sees the distance alone. It is not Gaussian, as that *is* the product kernel.

Scales and ridge have the smallest leave-one-out error over ID points. R^2 is
1 - SSE / SST over all pixels, with SST about the mean ID output, in ID and OOD.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.features import single_threaded
from tfcomp.metrics.kernels import flatten_outputs
from tfcomp.metrics.registry import (
    Scores,
    average,
    computes,
    finite_or_none,
    mean_or_none,
)
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

KERNELS = ("additive", "product", "radial")
# In grid steps of each factor. The radial kernel tends to the largest, but
# its R^2 over ID points gains less than 0.002 beyond 4.
SCALES = (0.5, 1.0, 2.0, 4.0)
# Relative to k(f, f) = 1. Below, R^2 of bumps moves in the sixth digit; above,
# even the additive kernel, the stiffest, fits ID worse.
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
MIN_POINTS = 2
# Of more ID points a fixed sample counts: 3,000 would take twenty minutes.
MAX_POINTS = 1024
# Of more factors, all have one length scale: four for each are 4^F fits.
MAX_SCALES = 6


@dataclass(frozen=True)
class Interpolation:
    """Scores per held-out point, in the order of the curve, [m]."""

    rows: Array
    edges: Array  # [m, 2]
    fraction: Array
    weights: Array  # [m, 2]
    r2: Array
    linear_r2: Array
    truth_r2: Array


def find_edges(is_ood: Array, cycle: int = 0) -> tuple[Array, Array, Array]:
    """Finds the ID points before and after held-out points of a curve.

    Args:
        is_ood: Which points are held out, in the order of the curve, [n].
        cycle: Steps once around a closed curve (`Factor.cycle`); 0 if open.

    Returns:
        Rows of held-out points between ID ones [m], rows of their edges
        [m, 2], and the fraction of the way between these [m].
    """
    id_rows = np.flatnonzero(~is_ood)
    rows = np.flatnonzero(is_ood)
    if cycle:
        turns = [-cycle, 0, cycle]
        id_rows = np.add.outer(turns, id_rows).ravel()

    following = np.searchsorted(id_rows, rows)
    is_inside = (following > 0) & (following < len(id_rows))
    rows = rows[is_inside]
    following = following[is_inside]

    before = id_rows[following - 1]
    after = id_rows[following]
    fraction = (rows - before) / (after - before)
    edges = np.stack([before, after], axis=1)  # [m, 2]
    return rows, edges % (cycle or len(is_ood)), fraction


def compute_interpolation(
    outputs: Array,
    truth: Array,
    is_ood: Array,
    cycle: int = 0,
) -> Interpolation:
    """Compares outputs between ID points with the images at the edges.

    Args:
        outputs: Bright outputs along a curve, [n, ...].
        truth: Bright true images along it, [n, ...].
        is_ood: Which points are held out, [n].
        cycle: Steps once around a closed curve; 0 if open.
    """
    outputs = flatten_outputs(outputs)
    truth = flatten_outputs(truth)
    rows, edges, fraction = find_edges(is_ood, cycle)

    num_points = len(rows)
    weights = np.zeros((num_points, 2))
    r2 = np.zeros(num_points)
    linear_r2 = np.zeros(num_points)
    truth_r2 = np.zeros(num_points)
    for i, row in enumerate(rows):
        output = outputs[row]
        image = truth[row]
        ends = truth[edges[i]]
        linear = np.array([1 - fraction[i], fraction[i]])
        best = _fit_weights(ends, output)
        true_weights = _fit_weights(ends, image)

        weights[i] = best
        r2[i] = _compute_r2(output, best @ ends)
        linear_r2[i] = _compute_r2(output, linear @ ends)
        truth_r2[i] = _compute_r2(image, true_weights @ ends)
    return Interpolation(
        rows=rows,
        edges=edges,
        fraction=fraction,
        weights=weights,
        r2=r2,
        linear_r2=linear_r2,
        truth_r2=truth_r2,
    )


def interpolate_edges(truth: Array, is_ood: Array, cycle: int = 0) -> Array:
    """Interpolates images between two known ones.

    Args:
        truth: Images along a curve, [n, ...].
        is_ood: Which points are held out, [n].
        cycle: Steps once around a closed curve; 0 if open.

    Returns:
        Images, [n, ...]; inside of a gap they are blends of its edges.
    """
    rows, edges, fraction = find_edges(is_ood, cycle)
    images = np.array(truth, np.float64)
    before = images[edges[:, 0]]
    after = images[edges[:, 1]]
    weight = fraction.reshape(-1, *[1] * (images.ndim - 1))
    images[rows] = (1 - weight) * before + weight * after
    return images


def _fit_weights(ends: Array, target: Array) -> Array:
    """Fits an image [pixels] by weights [2] of two others, [2, pixels]."""
    solution = np.linalg.lstsq(ends.T, target, rcond=None)
    return solution[0]


def summarize_interpolation(scores: Interpolation) -> Scores:
    """Averages over held-out points, with the least R^2."""
    fraction = scores.fraction
    linear = np.stack([1 - fraction, fraction], axis=1)
    variation = np.sum((linear - 0.5) ** 2) or np.nan
    error = np.sum((scores.weights - linear) ** 2)
    return {
        "interpolation_r2": mean_or_none(scores.r2),
        "interpolation_r2_min": finite_or_none(scores.r2.min(initial=np.inf)),
        "linear_r2": mean_or_none(scores.linear_r2),
        "weight_r2": finite_or_none(1 - error / variation),
        "truth_r2": mean_or_none(scores.truth_r2),
    }


def _compute_r2(target: Array, prediction: Array) -> float:
    total = np.sum(target**2) or np.nan
    error = np.sum((target - prediction) ** 2)
    return float(1 - error / total)


@computes("run", AT_MOST_ONE, "edge_weight_r2 edge_linear_r2")
@computes("run", SHARE, "edge_r2 edge_r2_min edge_truth_r2")
def measure_interpolation(analysis: RunAnalysis) -> Scores:
    """Explains outputs in a gap by its edges; R^2 is about 0 (figure 9a-d)."""
    if not analysis.gaps:
        return {}

    summaries = []
    for curve in analysis.gaps:
        summaries.append(summarize_interpolation(analysis.score_gap(curve)))
    numbers: Scores = {}
    for key in summaries[0]:
        name = key.removeprefix("interpolation_")
        values = [summary[key] for summary in summaries]
        numbers[f"edge_{name}"] = average(values)
    return numbers


@dataclass(frozen=True)
class KernelFit:
    """One kernel regression: chosen length scales, in grid steps, and ridge.

    Empty and NaN without a fit; R^2 is None where outputs do not vary.
    """

    scales: tuple[float, ...]
    ridge: float
    r2_id: float | None
    r2_ood: float | None


NO_FIT = KernelFit(
    scales=(),
    ridge=float("nan"),
    r2_id=None,
    r2_ood=None,
)


class Choice(NamedTuple):
    """The parameters of a kernel with the least leave-one-out error."""

    error: float  # sum of squares over points and pixels
    scales: tuple[float, ...]
    ridge: float


def make_kernel(
    kernel: str,
    rows: Array,
    columns: Array,
    scales: Sequence[float],
) -> Array:
    """Makes a kernel of coordinates (appendix A.4).

    Args:
        kernel: One of `KERNELS`.
        rows: Points, [n, F].
        columns: Points, [m, F].
        scales: A length scale for each factor, or one for all.

    Returns:
        The kernel, [n, m].
    """
    num_factors = rows.shape[1]
    total = np.zeros((len(rows), len(columns)))
    # Factor by factor: an array of all would take gigabytes.
    factor_scales = np.broadcast_to(scales, num_factors)
    for column, scale in enumerate(factor_scales):
        offsets = np.subtract.outer(rows[:, column], columns[:, column])
        squares = (offsets / scale) ** 2
        if kernel == "additive":
            total += np.exp(-squares / 2)
        else:
            total += squares

    if kernel == "additive":
        return total / num_factors
    if kernel == "product":
        return np.exp(-total / 2)
    distance = np.sqrt(3 * total)
    return (1 + distance) * np.exp(-distance)


@single_threaded
def fit_kernels(
    factors: Array,
    outputs: Mapping[str, Array],
    is_ood: Array,
) -> dict[str, dict[str, KernelFit]]:
    """Fits every kernel to ID outputs, and predicts OOD outputs.

    Args:
        factors: Values of the factors, [n, F].
        outputs: Outputs by name, [n, ...] each.
        is_ood: Which points are held out, [n].

    Returns:
        Ridge regressions with a free intercept, by output and by kernel.
    """
    points = _convert_to_steps(factors)
    rows = np.flatnonzero(~is_ood)
    sample = choose_rows(len(rows), MAX_POINTS)
    rows = rows[sample]
    id_points = points[rows]  # [n_id, F]
    ood_points = points[is_ood]  # [n_ood, F]

    targets = {}
    held_out = {}
    for name, values in outputs.items():
        flat = flatten_outputs(values)
        held_out[name] = flat[is_ood]
        is_finite = np.isfinite(flat[rows]).all()
        if len(rows) >= MIN_POINTS and is_finite:
            targets[name] = flat[rows]

    fits = {}
    for name in outputs:
        fits[name] = dict.fromkeys(KERNELS, NO_FIT)
    for kernel in KERNELS:
        choices = _choose(kernel, id_points, targets)
        for name, choice in choices.items():
            fits[name][kernel] = _fit_kernel(
                kernel,
                choice,
                id_points,
                ood_points,
                targets[name],
                held_out[name],
            )
    return fits


def _fit_kernel(
    kernel: str,
    choice: Choice,
    id_points: Array,
    ood_points: Array,
    target: Array,
    held_out: Array,
) -> KernelFit:
    """Fits one kernel, and scores it in ID and OOD.

    Args:
        kernel: One of `KERNELS`.
        choice: Its scales and its ridge.
        id_points: Coordinates of ID points, [n_id, F].
        ood_points: Coordinates of OOD points, [n_ood, F].
        target: ID outputs, [n_id, pixels].
        held_out: OOD outputs, [n_ood, pixels].
    """
    among_id = make_kernel(
        kernel,
        id_points,
        id_points,
        choice.scales,
    )
    parts = np.linalg.eigh(among_id)
    (solution,) = _solve(parts, target, [choice.ridge])
    weights, intercept, _ = solution
    to_id = make_kernel(
        kernel,
        ood_points,
        id_points,
        choice.scales,
    )
    prediction = to_id @ weights
    residual = held_out - prediction - intercept
    squared_error = np.sum(residual**2)

    mean = target.mean(axis=0)
    return KernelFit(
        scales=choice.scales,
        ridge=choice.ridge,
        r2_id=_compute_fit_r2(choice.error, target, mean),
        r2_ood=_compute_fit_r2(squared_error, held_out, mean),
    )


def _convert_to_steps(factors: Array) -> Array:
    """Converts values of factors [n, F] to grid steps from the least one."""
    columns = []
    for values in np.asarray(factors, np.float64).T:
        distinct = np.unique(values)
        count = max(len(distinct) - 1, 1)
        spacing = np.ptp(distinct) / count or 1.0
        columns.append((values - distinct[0]) / spacing)
    return np.stack(columns, axis=1)


def _choose(
    kernel: str,
    id_points: Array,
    targets: Mapping[str, Array],
) -> dict[str, Choice]:
    """Chooses scales and ridge of the least leave-one-out error, by target.

    Args:
        kernel: One of `KERNELS`.
        id_points: Coordinates of ID points, [n, F].
        targets: ID outputs by name, [n, pixels] each.
    """
    if not targets:
        return {}

    rotated = {}
    for name, values in targets.items():
        rotated[name] = _rotate(values)
    # A radial kernel has one scale for all factors, and any kernel of so many
    # factors that a search for the scale of each would not end.
    count = id_points.shape[1]
    if kernel == "radial" or count > MAX_SCALES:
        count = 1

    best: dict[str, Choice] = {}
    for scales in itertools.product(SCALES, repeat=count):
        among_id = make_kernel(
            kernel,
            id_points,
            id_points,
            scales,
        )
        parts = np.linalg.eigh(among_id)
        for name, values in rotated.items():
            solutions = _solve(parts, values, RIDGES)
            for ridge, solution in zip(RIDGES, solutions, strict=True):
                weights, _, diagonal = solution
                # Exact: the residual of the full fit is ridge * a_i and the
                # share of a point in its own prediction is 1 - ridge * M_ii.
                errors = weights / diagonal[:, None]
                error = float(np.vdot(errors, errors))
                if name not in best or error < best[name].error:
                    best[name] = Choice(error, scales, ridge)
    return best


def _rotate(values: Array) -> Array:
    """Rotates pixel space, so that targets [n, pixels] have n dimensions."""
    # Squared errors do not change under a rotation of pixel space, where
    # n targets span n dimensions: the rest would be multiplied for nothing.
    if values.shape[1] <= len(values):
        return values
    triangle = np.linalg.qr(values.T, mode="r")
    return np.asarray(triangle).T


def _solve(
    parts: tuple[Array, Array],
    targets: Array,
    ridges: Sequence[float],
) -> Iterator[tuple[Array, Array, Array]]:
    """Solves (K + ridge) a + b = Y, sum a = 0, with K = U diag(w) U^T.

    Yields, for every ridge, weights a = M Y [n, pixels], intercept b [pixels],
    and the diagonal of M = B - B 1 1^T B / 1^T B 1, where B = (K + ridge)^-1.
    """
    eigenvalues, vectors = parts
    # The smallest are zero up to rounding, and may be just below it.
    eigenvalues = np.maximum(eigenvalues, 0)
    rotated_ones = vectors.sum(axis=0)  # U^T 1, [n]
    rotated = vectors.T @ targets
    for ridge in ridges:
        inverse = 1 / (eigenvalues + ridge)
        scaled_ones = inverse * rotated_ones
        total = scaled_ones @ rotated_ones  # 1^T B 1
        intercept = scaled_ones @ rotated / total
        centered = rotated - np.outer(rotated_ones, intercept)
        weights = vectors @ (inverse[:, None] * centered)
        diagonal = vectors**2 @ inverse
        diagonal -= (vectors @ scaled_ones) ** 2 / total
        yield weights, intercept, diagonal


def _compute_fit_r2(
    squared_error: float,
    values: Array,
    mean: Array,
) -> float | None:
    """Computes R^2; None for outputs that do not vary.

    Args:
        squared_error: Sum over points and pixels.
        values: Outputs, [n, pixels].
        mean: The mean ID output, [pixels].
    """
    deviations = values - mean
    total = np.vdot(deviations, deviations)
    # Outputs that only differ by the rounding of their mean do not vary.
    size = np.vdot(values, values)
    if not total > 1e-24 * size:
        return None
    return finite_or_none(1 - squared_error / total)
