"""Kernel regression from ID outputs to OOD outputs, with three kernels.

Three ways to interpolate and extrapolate over the factors (paper section
3.3, appendix A.4), with distances t_f along a factor f in units of its
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

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.features import finite_or_none, single_threaded

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
class KernelFit:
    """One kernel regression: chosen length scales, in grid steps, and ridge.

    Empty and NaN without a fit; R^2 is None where outputs do not vary.
    """

    scales: tuple[float, ...]
    ridge: float
    r2_id: float | None
    r2_ood: float | None


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
    shape = (len(rows), len(columns))
    total = np.zeros(shape)
    # Factor by factor: an array of all would take gigabytes.
    factor_scales = np.broadcast_to(scales, num_factors)
    for column, scale in enumerate(factor_scales):
        row_values = rows[:, None, column]
        column_values = columns[None, :, column]
        steps = (row_values - column_values) / scale
        squares = steps**2
        if kernel == "additive":
            total += np.exp(-squares / 2)
        else:
            total += squares

    if kernel == "additive":
        return total / num_factors
    if kernel == "product":
        return np.exp(-total / 2)
    distance = np.sqrt(3 * total)
    decay = np.exp(-distance)
    return (1 + distance) * decay


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
        flat = np.reshape(values, (len(values), -1))
        flat = flat.astype(np.float64)
        held_out[name] = flat[is_ood]
        target = flat[rows]
        is_finite = np.isfinite(target).all()
        if len(rows) >= MIN_POINTS and is_finite:
            targets[name] = target

    nothing = KernelFit(
        scales=(),
        ridge=float("nan"),
        r2_id=None,
        r2_ood=None,
    )
    fits = {}
    for name in outputs:
        fits[name] = dict.fromkeys(KERNELS, nothing)
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
    r2_id = _compute_r2(
        choice.error,
        deviations=target - mean,
        values=target,
    )
    r2_ood = _compute_r2(
        squared_error,
        deviations=held_out - mean,
        values=held_out,
    )
    return KernelFit(
        scales=choice.scales,
        ridge=choice.ridge,
        r2_id=r2_id,
        r2_ood=r2_ood,
    )


def _convert_to_steps(factors: Array) -> Array:
    """Converts values of factors [n, F] to grid steps from the least one."""
    columns = []
    table = np.asarray(factors, np.float64)
    for values in table.T:
        distinct = np.unique(values)
        count = max(len(distinct) - 1, 1)
        spacing = np.ptp(distinct) / count
        if spacing == 0:
            spacing = 1.0
        offset = values - distinct[0]
        steps = offset / spacing
        columns.append(steps)
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
            by_ridge = zip(RIDGES, solutions, strict=True)
            for ridge, solution in by_ridge:
                weights, _, diagonal = solution
                # Exact: the residual of the full fit is ridge * a_i and the
                # share of a point in its own prediction is 1 - ridge * M_ii.
                errors = weights / diagonal[:, None]
                error = float(np.vdot(errors, errors))
                is_first = name not in best
                if is_first or error < best[name].error:
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
        level = np.outer(rotated_ones, intercept)
        centered = rotated - level
        scaled = inverse[:, None] * centered
        weights = vectors @ scaled
        diagonal = vectors**2 @ inverse
        ones = vectors @ scaled_ones
        diagonal -= ones**2 / total
        yield weights, intercept, diagonal


def _compute_r2(
    squared_error: float,
    deviations: Array,
    values: Array,
) -> float | None:
    """Computes R^2; None for outputs that do not vary.

    Args:
        squared_error: Sum over points and pixels.
        deviations: Outputs less the mean ID output, [n, pixels].
        values: Outputs, [n, pixels].
    """
    total = np.vdot(deviations, deviations)
    # Outputs that only differ by the rounding of their mean do not vary.
    size = np.vdot(values, values)
    if not total > 1e-24 * size:
        return None
    return finite_or_none(1 - squared_error / total)
