"""Gram matrices of outputs over a grid, and ideal kernels of factors.

A Gram matrix [n, n], float64, is the similarity of every pair of outputs [n,
...] (paper section 3.3, eq. 2 and 34; appendix F.1). Outputs are expected
*bright*, a bump of 1 on a background of 0: pass `1 - images` for dark ones. A
*blank* output (all zeros) has a cosine and overlap of 0 with every output,
itself included. An output that is not finite makes its row and column NaN.

With deltas d_f = 1 where two points have the same value of factor f, else 0,
the ideal kernels are (eq. 32 for more factors)

    binary factorized   k = mean over factors of d_f     (eq. 3, 4: d/2 + d/2)
    conjunctive         k = product over factors of d_f

and agreement with a Gram matrix is the centered kernel alignment

    A(K, L) = <HKH, HLH> / (|HKH| |HLH|),      H = I - 11^T / n

which ignores the scale of a kernel and a constant added to it. Cosines of true
bumps have A = 0.41 and 0.42 with the first two, as deltas have no width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics import schmidt
from tfcomp.metrics.features import single_threaded
from tfcomp.metrics.registry import (
    Scores,
    computes,
    finite_or_none,
    make_scores,
)
from tfcomp.statistics.limits import CORRELATION, POSITIVE, SHARE, Limits

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

# Half of the height of a bump: absolute, so that faint outputs count as blank.
THRESHOLD = 0.5
# Relative norm below which a centered kernel is the rounding of a constant one.
FLOOR = 1e-6
MAX_KERNEL = 2500  # points whose Schmidt values take a second
# Widths among which the best one is chosen, in grid steps.
WIDTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


@single_threaded
def compute_cosine_gram(outputs: Array) -> Array:
    """Computes cosine similarities of all pairs of outputs.

    Args:
        outputs: Bright images or activations, [n, ...].

    Returns:
        Cosines in [-1, 1], to about 1e-6, [n, n].
    """
    flat = _scale_rows(flatten_outputs(outputs))
    unit = flat.astype(np.float32)  # for a product that is twice as fast
    product = unit @ unit.T
    gram = product.astype(np.float64)
    return np.clip(gram, -1, 1, out=gram)


@single_threaded
def compute_distance_gram(outputs: Array) -> Array:
    """Computes L2 distances of all pairs over all pixels, [n, n].

    Args:
        outputs: Images or activations, [n, ...].
    """
    flat = flatten_outputs(outputs)
    is_finite = np.isfinite(flat).all(axis=1)
    # |a|^2 + |b|^2 - 2 ab cancels: hence without the common part, in float64.
    if is_finite.any():
        common = flat[is_finite].mean(axis=0)
        flat -= common

    gram = flat @ flat.T
    squared_lengths = np.diagonal(gram).copy()
    gram *= -2
    gram += squared_lengths[:, None]
    gram += squared_lengths
    gram[is_finite, is_finite] = 0  # of each to itself
    np.maximum(gram, 0, out=gram)
    return np.sqrt(gram, out=gram)


@single_threaded
def compute_overlap_gram(outputs: Array) -> Array:
    """Computes intersection over union of bright pixels, of all pairs.

    Args:
        outputs: Bright images, [n, ...].

    Returns:
        Overlaps in [0, 1], [n, n].
    """
    flat = flatten_outputs(outputs)
    is_broken = np.isnan(flat).any(axis=1)
    is_bright = (flat > THRESHOLD).astype(np.float32)
    # Counts of pixels, which float32 holds exactly up to 2^24.
    product = is_bright @ is_bright.T
    intersection = product.astype(np.float64)
    counts = np.diagonal(intersection)
    union = counts[:, None] + counts - intersection

    overlap = intersection / _one_if_zero(union)
    overlap[is_broken] = np.nan
    overlap[:, is_broken] = np.nan
    return overlap


def flatten_outputs(outputs: Array) -> Array:
    """Makes a float64 copy [n, pixels]; rows that are not finite are NaN."""
    flat = np.array(outputs, np.float64).reshape(len(outputs), -1)
    is_finite = np.isfinite(flat).all(axis=1)
    flat[~is_finite] = np.nan
    return flat


def _scale_rows(flat: Array) -> Array:
    """Scales rows to length one, in place; blank ones stay."""
    # By the largest entry first, since squares of 1e-200 underflow.
    largest = np.abs(flat).max(axis=1, keepdims=True, initial=0)
    flat /= _one_if_zero(largest)
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    flat /= _one_if_zero(lengths)
    return flat


def _one_if_zero(values: Array) -> Array:
    return np.where(values == 0, 1.0, values)


def make_factorized_kernel(factors: Array, width: float = 0.0) -> Array:
    """Makes the binary factorized kernel (eq. 3, 4).

    An absent value (NaN) agrees with none.

    Args:
        factors: Values of the factors, [n, F].
        width: In units of factors; above 0, the overlap of two bumps,
            exp(-distance^2 / 4 width^2), replaces deltas.

    Returns:
        The kernel, [n, n].
    """
    similarities = list(_compute_similarities(factors, width))
    return np.mean(similarities, axis=0)


def make_conjunctive_kernel(factors: Array, width: float = 0.0) -> Array:
    """Makes the kernel that is 1 where all factors agree.

    Args:
        factors: Values of the factors, [n, F].
        width: In units of factors, as of `make_factorized_kernel`.

    Returns:
        The kernel, [n, n].
    """
    similarities = list(_compute_similarities(factors, width))
    return np.prod(similarities, axis=0)


IDEAL_KERNELS: dict[str, Callable[..., Array]] = {
    "factorized": make_factorized_kernel,
    "conjunctive": make_conjunctive_kernel,
}


def compute_alignment(gram: Array, kernel: Array) -> float:
    """Computes the centered alignment of two kernels (appendix F.1).

    Args:
        gram: One kernel, [n, n].
        kernel: The other, [n, n].

    Returns:
        From -1 to 1; 0 for equal rows or columns; NaN for fewer than three
        points (two have 1 with any kernel), or if not finite.
    """
    is_finite = np.isfinite([gram, kernel]).all()
    if len(gram) < 3 or not is_finite:
        return float("nan")

    product = np.vdot(_center(gram), _center(kernel))
    return float(np.clip(product, -1, 1))


def summarize_alignment(
    gram: Array,
    factors: Array,
    rows: Array,
    width: float = 0.0,
) -> Scores:
    """Computes the alignment with each ideal kernel (figure 1e).

    Args:
        gram: Similarity of all pairs of points, [n, n].
        factors: Values of the factors, [n, F].
        rows: The points that count, as OOD points: mask or numbers.
        width: Of the kernels (`make_factorized_kernel`).

    Returns:
        Alignments by name, as `alignment_factorized`.
    """
    block = gram[np.ix_(rows, rows)]
    points = factors[rows]
    numbers = {}
    for name, make_kernel in IDEAL_KERNELS.items():
        kernel = make_kernel(points, width)
        numbers[f"alignment_{name}"] = compute_alignment(block, kernel)
    return make_scores(numbers)


def summarize_best_alignment(
    gram: Array,
    factors: Array,
    rows: Array,
) -> Scores:
    """Computes the alignment with kernels of the best width of `WIDTHS`.

    `alignment_additive_best` refers to k(x, x') + k(y, y'), with k the overlap
    of two bumps, `alignment_radial_best` to the product, a Gaussian.

    Args:
        gram: Similarity of all pairs of points, [n, n].
        factors: Values of the factors, [n, F].
        rows: The points that count: mask or numbers.
    """
    block = gram[np.ix_(rows, rows)]
    points = factors[rows]
    kernels = {
        "additive": make_factorized_kernel,
        "radial": make_conjunctive_kernel,
    }
    numbers: Scores = {}
    for name, make_kernel in kernels.items():
        alignments = []
        for width in WIDTHS:
            kernel = make_kernel(points, width)
            alignments.append(compute_alignment(block, kernel))

        best = int(np.argmax(alignments))  # the first NaN, if there is one
        numbers[f"alignment_{name}_best"] = finite_or_none(alignments[best])
        numbers[f"alignment_{name}_width"] = None
        if np.isfinite(alignments[best]):
            numbers[f"alignment_{name}_width"] = WIDTHS[best]
    return numbers


def _compute_similarities(factors: Array, width: float) -> Iterator[Array]:
    """Yields the similarity of all pairs of points in each factor, [n, n]."""
    for values in factors.T:
        difference = np.subtract.outer(values, values)
        if width > 0:
            steps = difference / (2 * width)
            kernel = np.exp(-(steps**2))
            yield np.nan_to_num(kernel, nan=0.0)
        else:
            is_equal = difference == 0
            yield is_equal.astype(np.float64)


def _center(matrix: Array) -> Array:
    """Centers rows and columns, and scales to norm one; zeros if constant."""
    matrix = matrix.astype(np.float64)
    floor = FLOOR * np.linalg.norm(matrix)
    matrix -= matrix.mean(axis=0)
    row_means = matrix.mean(axis=1)
    matrix -= row_means[:, np.newaxis]
    norm = np.linalg.norm(matrix)
    if norm > floor:
        return matrix / norm
    return np.zeros_like(matrix)


@computes(
    "run",
    CORRELATION,
    "alignment_factorized alignment_conjunctive "
    "alignment_factorized_smooth alignment_radial alignment_additive_best "
    "alignment_radial_best",
)
@computes(
    "run",
    POSITIVE,
    "alignment_additive_width alignment_radial_width",
    unit="steps",
)
@computes(
    "run",
    SHARE,
    "anova_first anova_second anova_single anova_pairwise anova_higher "
    "factorization_ratio schmidt_centered_explained_1 "
    "schmidt_centered_explained_2",
)
@computes("run", Limits(1), "schmidt_centered_effective_rank")
def measure_alignment(analysis: RunAnalysis) -> Scores:
    """Compares outputs with ideal kernels (figure 1e, equations 3, 4)."""
    if not analysis.has_hole:
        return {}

    gram = compute_cosine_gram(analysis.bright_outputs)
    numbers = analysis.align(gram)
    shape = analysis.dataset.space.shape
    if analysis.is_plane:
        is_ood = analysis.splits.is_ood
        numbers |= summarize_best_alignment(gram, analysis.index, is_ood)
        if len(gram) <= MAX_KERNEL:
            numbers |= schmidt.summarize_schmidt(
                schmidt.center_kernel(gram),
                shape,
                name="schmidt_centered",
            )
    elif analysis.splits.is_complete:
        numbers |= schmidt.summarize_anova(gram, shape)
    return numbers
