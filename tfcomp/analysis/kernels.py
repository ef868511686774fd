"""Ideal kernels over factors, and their agreement with a Gram matrix.

With deltas d_f = 1 where two points have the same value of factor f, else 0:

    binary factorized   k = mean over factors of d_f     (eq. 3, 4: d/2 + d/2)
    conjunctive         k = product over factors of d_f
    constant            k = 1

(paper section 3.3; eq. 32 for more factors.) Agreement with a measured Gram
matrix is the centered kernel alignment

    A(K, L) = <HKH, HLH> / (|HKH| |HLH|),      H = I - 11^T / n

which ignores the scale of a kernel and a constant added to it. Cosines of true
bumps have A = 0.41 and 0.42 with the first two, as deltas have no width; with
the `width` of the bumps the conjunctive kernel *is* their cosine.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tfcomp.analysis.features import finite_or_none
from tfcomp.datasets.factors import Factor, FactorSpace

# Relative norm below which a centered kernel is the rounding of a constant one.
FLOOR = 1e-6
# Widths among which the best one is chosen, in units of the factors.
WIDTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


def make_factorized_kernel(
    factors: np.ndarray, width: float = 0.0
) -> np.ndarray:
    """Returns the binary factorized kernel of values [n, F], [n, n].

    Its numbers are shares of factors that agree; an absent one (NaN) agrees
    with none. With a width, in units of the factors, the overlap
    exp(-distance^2 / 4 width^2) of two bumps replaces each delta.
    """
    return np.mean(list(_similarities(factors, width)), axis=0)


def make_conjunctive_kernel(
    factors: np.ndarray, width: float = 0.0
) -> np.ndarray:
    """Returns the conjunctive kernel: 1 where all factors agree, else 0."""
    return np.prod(list(_similarities(factors, width)), axis=0)


def make_constant_kernel(factors: np.ndarray, width: float = 0.0) -> np.ndarray:
    """Returns the kernel of outputs that ignore the factors, ones [n, n]."""
    return np.ones((len(factors), len(factors)))


IDEAL_KERNELS: dict[str, Callable[..., np.ndarray]] = {
    "factorized": make_factorized_kernel,
    "conjunctive": make_conjunctive_kernel,
    "constant": make_constant_kernel,
}


def compute_alignment(gram: np.ndarray, kernel: np.ndarray) -> float:
    """Returns the centered alignment of two kernels [n, n], from -1 to 1.

    0 for a kernel that is the same for all rows or columns; NaN for no points
    or values that are not finite.
    """
    is_finite = np.isfinite(gram).all() and np.isfinite(kernel).all()
    if gram.size == 0 or not is_finite:
        return float("nan")
    return float(np.clip(np.vdot(_center(gram), _center(kernel)), -1, 1))


def summarize_alignment(
    gram: np.ndarray, factors: np.ndarray, rows: np.ndarray, width: float = 0.0
) -> dict[str, float | None]:
    """Returns the alignment with each ideal kernel, on some points.

    Args:
        gram: Similarities of all points, [n, n].
        factors: Values at all points, [n, F].
        rows: Which points count, bool [n]: OOD ones in the paper's fig. 1e.
        width: Of the bumps that replace deltas.

    Returns:
        Numbers by name as `alignment_factorized`; None where there are no
        points or a value is not finite.
    """
    block, points = gram[np.ix_(rows, rows)], factors[rows]
    numbers = {}
    for name, make_kernel in IDEAL_KERNELS.items():
        alignment = compute_alignment(block, make_kernel(points, width))
        numbers[f"alignment_{name}"] = finite_or_none(alignment)
    return numbers


def summarize_best_alignment(
    gram: np.ndarray, factors: np.ndarray, rows: np.ndarray
) -> dict[str, float | None]:
    """Returns the alignment with kernels of the best width of `WIDTHS`.

    Outputs are often wider than a bump, and of two kernels the one with their
    width would win whatever they show. `alignment_additive_best` refers to
    k(x, x') + k(y, y'), with k the overlap of two bumps, and
    `alignment_radial_best` to the product of the two, a Gaussian of the
    distance. Arguments and None are as in `summarize_alignment`.
    """
    block, points = gram[np.ix_(rows, rows)], factors[rows]
    numbers: dict[str, float | None] = {}
    for name, make_kernel in (
        ("additive", make_factorized_kernel),
        ("radial", make_conjunctive_kernel),
    ):
        alignments = [
            compute_alignment(block, make_kernel(points, w)) for w in WIDTHS
        ]
        best = int(np.argmax(alignments))
        value = finite_or_none(alignments[best])
        width = None if value is None else WIDTHS[best]
        numbers[f"alignment_{name}_best"] = value
        numbers[f"alignment_{name}_width"] = width
    return numbers


def convert_to_steps(
    factors: np.ndarray, space: FactorSpace | None = None
) -> np.ndarray:
    """Converts finite factor values to grid steps from the first, [n, F].

    A step is the mean spacing of the values that occur, so the table must be on
    a grid; with a space, steps are between its values.
    """
    factors = np.asarray(factors, np.float64)
    if space is not None:
        return space.to_index(factors).astype(np.float64)
    columns = []
    for values in factors.T:
        distinct = np.unique(values)
        spacing = np.ptp(distinct) / max(len(distinct) - 1, 1)
        columns.append((values - distinct[0]) / (spacing or 1.0))
    return np.stack(columns, axis=1)


def compute_offsets(
    points: np.ndarray, point: np.ndarray, space: Iterable[Factor] | None = None
) -> np.ndarray:
    """Returns grid steps from one point [F] to others by factor, [n, F].

    A periodic factor goes on behind its last value, and any other class of a
    categorical one is one step away; without a space, factors are neither.
    """
    # Rounded, so that equal distances are equal numbers.
    offsets = np.abs(points - point).round(6)
    for column, factor in zip(offsets.T, space or (), strict=False):
        if factor.categorical:
            column[:] = column > 0
        elif factor.periodic:
            np.minimum(column, factor.size - column, out=column)
    return offsets


def _similarities(factors: np.ndarray, width: float) -> Iterator[np.ndarray]:
    """Yields a matrix [n, n] for each factor."""
    for values in factors.T:
        difference = np.subtract.outer(values, values)
        if width > 0:
            kernel = np.exp(-((difference / (2 * width)) ** 2))
            yield np.nan_to_num(kernel, nan=0.0)
        else:
            yield (difference == 0).astype(np.float64)


def _center(matrix: np.ndarray) -> np.ndarray:
    """Removes row and column means, and scales to a norm of one."""
    matrix = matrix.astype(np.float64)
    floor = FLOOR * np.linalg.norm(matrix)
    matrix -= matrix.mean(axis=0)
    matrix -= matrix.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(matrix)
    return matrix / norm if norm > floor else np.zeros_like(matrix)
