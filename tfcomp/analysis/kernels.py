"""Ideal kernels over factors, and how well a Gram matrix agrees with them.

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
    """Binary factorized kernel of values [n, F]: the fraction that agrees.

    An absent one (NaN) agrees with none. With a width, in units of the factors,
    the overlap exp(-distance^2 / 4 width^2) of two bumps replaces each delta.
    """
    return np.mean(list(_similarities(factors, width)), axis=0)


def make_conjunctive_kernel(
    factors: np.ndarray, width: float = 0.0
) -> np.ndarray:
    """Conjunctive kernel, likewise: 1 where all factors agree, else 0."""
    return np.prod(list(_similarities(factors, width)), axis=0)


def make_constant_kernel(factors: np.ndarray, width: float = 0.0) -> np.ndarray:
    """Kernel of outputs that do not depend on the factors, ones [n, n]."""
    return np.ones((len(factors), len(factors)))


IDEAL_KERNELS: dict[str, Callable[..., np.ndarray]] = {
    "factorized": make_factorized_kernel,
    "conjunctive": make_conjunctive_kernel,
    "constant": make_constant_kernel,
}


def compute_alignment(gram: np.ndarray, kernel: np.ndarray) -> float:
    """Centered alignment of two kernels [n, n] over the same points: -1 to 1.

    0 for a kernel that is the same for all rows or columns; NaN for no points
    or values that are not finite.
    """
    gram, kernel = np.asarray(gram), np.asarray(kernel)
    if gram.shape != kernel.shape:
        raise ValueError(
            "gram and kernel must have the same shape; received "
            f"{gram.shape} and {kernel.shape}"
        )
    is_finite = np.isfinite(gram).all() and np.isfinite(kernel).all()
    if gram.size == 0 or not is_finite:
        return float("nan")
    return float(np.clip(np.vdot(_center(gram), _center(kernel)), -1, 1))


def summarize_alignment(
    gram: np.ndarray, factors: np.ndarray, rows: np.ndarray, width: float = 0.0
) -> dict[str, float | None]:
    """Alignment of a Gram matrix with each ideal kernel, on some points.

    Similarities [n, n] and factor values [n, F] are those of all points,
    `rows` (bool [n]) says which of them count: OOD ones in the paper's fig. 1e.
    By names as `alignment_factorized`; None where there are no points or a
    value is not finite.
    """
    rows = np.asarray(rows, bool)
    block, points = gram[np.ix_(rows, rows)], factors[rows]
    numbers = {}
    for name, make_kernel in IDEAL_KERNELS.items():
        found = compute_alignment(block, make_kernel(points, width))
        numbers[f"alignment_{name}"] = finite_or_none(found)
    return numbers


def summarize_best_alignment(
    gram: np.ndarray, factors: np.ndarray, rows: np.ndarray
) -> dict[str, float | None]:
    """Alignment with an additive and with a radial kernel of the best width.

    Outputs are often wider than a bump, and of two kernels the one of their
    width would win whatever they show. `alignment_additive_best` is that with
    k(x, x') + k(y, y'), k the overlap of two bumps, `alignment_radial_best`
    with the product of the two, a Gaussian of the distance, at the `..._width`
    of `WIDTHS`. Arguments and None are as in `summarize_alignment`.
    """
    rows = np.asarray(rows, bool)
    block, points = gram[np.ix_(rows, rows)], factors[rows]
    numbers: dict[str, float | None] = {}
    for name, make_kernel in (
        ("additive", make_factorized_kernel),
        ("radial", make_conjunctive_kernel),
    ):
        found = [
            compute_alignment(block, make_kernel(points, w)) for w in WIDTHS
        ]
        best = int(np.argmax(found))
        value = finite_or_none(found[best])
        width = None if value is None else WIDTHS[best]
        numbers[f"alignment_{name}_best"] = value
        numbers[f"alignment_{name}_width"] = width
    return numbers


def convert_to_steps(
    factors: np.ndarray, space: FactorSpace | None = None
) -> np.ndarray:
    """Factor values in grid steps from the first value of each, float64 [n, F].

    A step is the mean spacing of the values that occur, so the table must be on
    a grid; with a space, steps are those between its values. Raises ValueError
    if a factor is absent (NaN).
    """
    factors = np.asarray(factors, np.float64)
    is_finite = np.isfinite(factors).all(axis=1)
    if not is_finite.all():
        row = int(np.argmin(is_finite))
        raise ValueError(
            f"factors must be finite; received {factors[row]} in row {row}"
        )
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
    """Grid steps from one point [F] to others along every factor, [n, F].

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
    """One [n, n] per factor."""
    for values in factors.T:
        difference = np.subtract.outer(values, values)
        if width > 0:
            kernel = np.exp(-((difference / (2 * width)) ** 2))
            yield np.nan_to_num(kernel, nan=0.0)
        else:
            yield (difference == 0).astype(np.float64)


def _center(matrix: np.ndarray) -> np.ndarray:
    """Without row and column means, and of norm one."""
    matrix = matrix.astype(np.float64)
    floor = FLOOR * np.linalg.norm(matrix)
    matrix -= matrix.mean(axis=0)
    matrix -= matrix.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(matrix)
    return matrix / norm if norm > floor else np.zeros_like(matrix)
