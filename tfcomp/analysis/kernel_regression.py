"""Kernel regression from ID outputs: which kernel predicts the OOD outputs?

Three ways to interpolate and extrapolate over the factors (paper section
3.3, appendix A.4), with distances t_f along a factor f in units of its
length scale:

    additive   k = mean over factors of exp(-t_f^2 / 2)
    product    k = product over factors of exp(-t_f^2 / 2)
    radial     k = (1 + sqrt(3) r) exp(-sqrt(3) r),   r^2 = sum of t_f^2

The additive kernel superposes what is known of x and what is known of y;
the product kernel needs both to be close; the radial one (Matern 3/2, one
length scale) sees the distance alone. It is not Gaussian, since a Gaussian
of the distance *is* the product kernel with equal scales, and a comparison
of the two could only be won by the product.

Scales and ridge are those of the smallest leave-one-out error over ID
points; OOD outputs are used for the final score only. R^2 is 1 - SSE / SST
over all pixels, with SST about the mean ID output, in ID and OOD alike: 0
for a predictor that always draws that mean.
"""

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.features import finite_or_none, single_threaded
from tfcomp.analysis.kernels import convert_to_steps
from tfcomp.datasets.dataset import choose_rows

# In grid steps of each factor. The radial kernel tends to the largest, but
# its R^2 over ID points gains less than 0.002 beyond 4, on true bumps and
# on those of a decoder; read its OOD value as one of many that fit ID alike.
SCALES = (0.5, 1.0, 2.0, 4.0)
# Relative to k(f, f) = 1. Below 1e-6, R^2 of bumps moves in the sixth digit
# only; above 1, even the additive kernel, the stiffest, fits ID worse.
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
MIN_POINTS = 2
# Of more ID points a fixed random sample is regressed on: the time grows with
# the cube of their number, and 3,000 would take twenty minutes.
MAX_POINTS = 1024


@dataclass(frozen=True)
class KernelFit:
    """One kernel regression.

    Attributes:
        scales: Chosen length scales in grid steps, one per factor; a single
            one for the radial kernel. Empty if nothing could be fitted.
        ridge: Chosen ridge; NaN likewise.
        r2_id: Leave-one-out R^2 over ID points.
        r2_ood: R^2 over OOD points. Both None where outputs are not finite,
            do not vary, or there are too few points.
    """

    kernel: str
    scales: tuple[float, ...]
    ridge: float
    r2_id: float | None
    r2_ood: float | None


def _compute_radial(squares: np.ndarray) -> np.ndarray:
    distance = np.sqrt(3 * squares.sum(axis=0))
    return (1 + distance) * np.exp(-distance)


# Of squared distances along every factor in units of its scale, [F, n, m].
KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "additive": lambda squares: np.exp(-squares / 2).mean(axis=0),
    "product": lambda squares: np.exp(-squares.sum(axis=0) / 2),
    "radial": _compute_radial,
}


def make_kernel(
    kernel: str, rows: np.ndarray, columns: np.ndarray, scales: Sequence[float]
) -> np.ndarray:
    """A kernel [n, m] of coordinates [n, F] and [m, F], a scale per factor."""
    difference = rows.T[:, :, None] - columns.T[:, None, :]  # [F, n, m]
    return KERNELS[kernel]((difference / np.reshape(scales, (-1, 1, 1))) ** 2)


def fit_kernel(
    kernel: str, factors: np.ndarray, outputs: np.ndarray, is_ood: np.ndarray
) -> KernelFit:
    """Ridge regression with one kernel, from ID to OOD outputs.

    The intercept (an output) is not penalized. Every combination of
    `SCALES` over factors is tried, at one eigendecomposition [n_id, n_id]
    each; ridges cost a matrix product.

    Outputs [n, ...] are those of a model, or true images, at factor values on
    a grid; the rows of OOD points are compared with the prediction.
    """
    return _fit(kernel, factors, [outputs], is_ood)[0]


@single_threaded
def _fit(
    kernel: str,
    factors: np.ndarray,
    outputs: Sequence[np.ndarray],
    is_ood: np.ndarray,
) -> list[KernelFit]:
    """Of several outputs at the same points, which share decompositions."""
    is_ood = np.asarray(is_ood, bool)
    points = convert_to_steps(factors)
    rows = np.flatnonzero(~is_ood)
    rows = rows[choose_rows(len(rows), MAX_POINTS)]
    known, queries = points[rows], points[is_ood]  # [n_id, F], [n_ood, F]
    flat = [np.reshape(o, (len(o), -1)).astype(np.float64) for o in outputs]
    targets = {
        i: values[rows]
        for i, values in enumerate(flat)
        if len(rows) >= MIN_POINTS and np.isfinite(values[rows]).all()
    }
    fits = [KernelFit(kernel, (), float("nan"), None, None)] * len(flat)
    for i, choice in _choose(kernel, known, targets).items():
        ood = flat[i][is_ood]
        fits[i] = _score(kernel, known, targets[i], queries, ood, *choice)
    return fits


def _choose(
    kernel: str, known: np.ndarray, targets: Mapping[int, np.ndarray]
) -> dict[int, tuple[float, tuple[float, ...], float]]:
    """Least leave-one-out error of each target, its scales, and its ridge."""
    rotated = {i: _rotate(values) for i, values in targets.items()}
    # A radial kernel has one scale; broadcasting serves all factors.
    count = 1 if kernel == "radial" else known.shape[1]
    best: dict[int, tuple[float, tuple[float, ...], float]] = {}
    for scales in itertools.product(SCALES, repeat=count) if targets else ():
        parts = np.linalg.eigh(make_kernel(kernel, known, known, scales))
        for i, values in rotated.items():
            for error, ridge in _leave_one_out(parts, values):
                found = error, scales, ridge
                known_best = best.get(i, found)
                best[i] = min(known_best, found, key=operator.itemgetter(0))
    return best


def _score(
    kernel: str,
    known: np.ndarray,
    targets: np.ndarray,
    queries: np.ndarray,
    ood: np.ndarray,
    error: float,
    scales: tuple[float, ...],
    ridge: float,
) -> KernelFit:
    """The fit with a choice, and how well it predicts OOD outputs."""
    parts = np.linalg.eigh(make_kernel(kernel, known, known, scales))
    ((weights, intercept, _),) = _solve(parts, targets, [ridge])
    predicted = make_kernel(kernel, queries, known, scales) @ weights
    left, mean = ood - predicted - intercept, targets.mean(axis=0)
    return KernelFit(
        kernel,
        scales,
        ridge,
        _compute_r2(error, targets - mean, targets),
        _compute_r2(np.sum(left**2), ood - mean, ood),
    )


def fit_kernels(
    factors: np.ndarray, outputs: np.ndarray, is_ood: np.ndarray
) -> dict[str, KernelFit]:
    """The fit of every kernel by name; arguments as of `fit_kernel`."""
    return fit_all_kernels(factors, {"": outputs}, is_ood)[""]


def fit_all_kernels(
    factors: np.ndarray, outputs: Mapping[str, np.ndarray], is_ood: np.ndarray
) -> dict[str, dict[str, KernelFit]]:
    """The fits of several outputs by name, for little more than those of one.

    Each is that of `fit_kernels`.
    """
    fits = {k: _fit(k, factors, [*outputs.values()], is_ood) for k in KERNELS}
    return {
        name: {kernel: found[i] for kernel, found in fits.items()}
        for i, name in enumerate(outputs)
    }


def _solve(
    parts: tuple[np.ndarray, np.ndarray],
    targets: np.ndarray,
    ridges: Sequence[float],
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Solves (K + ridge) a + b = Y, sum a = 0, for every ridge.

    From one eigendecomposition K = U diag(w) U^T.

    Yields:
        Weights a = M Y [n, pixels], intercept b [pixels], and the diagonal of
        M = B - B 1 1^T B / 1^T B 1, where B = (K + ridge)^-1.
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


def _leave_one_out(
    parts: tuple[np.ndarray, np.ndarray], targets: np.ndarray
) -> Iterator[tuple[float, float]]:
    """Summed squared error of points left out one by one, and the ridge.

    Exact, without refitting: the residual of the full fit is ridge * a_i and
    the share of a point in its own prediction is 1 - ridge * M_ii; their
    ratio is a_i / M_ii.
    """
    solutions = _solve(parts, targets, RIDGES)
    for ridge, (weights, _, diagonal) in zip(RIDGES, solutions, strict=True):
        residuals = weights / diagonal[:, None]
        yield float(np.vdot(residuals, residuals)), ridge


def _rotate(targets: np.ndarray) -> np.ndarray:
    # Squared errors summed over pixels do not change under a rotation of
    # pixel space, and n targets span at most n dimensions of it: with more
    # pixels than points, the rest would be multiplied for nothing.
    if targets.shape[1] <= len(targets):
        return targets
    return np.linalg.qr(targets.T, mode="r").T  # [n, n]


def _compute_r2(
    squared_error: float, deviations: np.ndarray, values: np.ndarray
) -> float | None:
    total = np.vdot(deviations, deviations)
    # Outputs that only differ by the rounding of their mean do not vary.
    if not total > 1e-24 * np.vdot(values, values):
        return None
    return finite_or_none(1 - squared_error / total)
