"""Interactions of factors in a stage: derivatives, contrast, curvature.

For a stage h of factors z, with h_i = dh/dz_i and h_ij = d2h/dz_i dz_j, all
inner products over its units:

    mixed share         sum_{i<j} |h_ij|^2 / S                       in [0, 1]
                        S = sum_i |h_i|^2 + sum_{i<=j} |h_ij|^2
    contrast            sum_{i<j} <|h_i|, |h_j|>
    relative contrast   contrast / sum_{i<j} |h_i| |h_j|             in [0, 1]
    curvature           K = (<II_11, II_22> - |II_12|^2) / det g

The sums of the mixed share (interaction asymmetry, Brady et al. 2025) are also
over points. Contrast: Brady et al. 2023. K is the Gaussian curvature of the
surface of two factors (Gauss): g_ij = <h_i, h_j> is its metric, II_ij what h_ij
has at right angles to h_1 and h_2.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.metrics import jacobians
from tfcomp.metrics.features import Scores, finite_or_none, mean_or_none
from tfcomp.metrics.geometry import is_dead

# Second derivatives over first ones up to which a stage is linear.
FLOOR = 1e-6
# Least squared sine between directions that span a surface, in float32.
MIN_SQUARED_SINE = 1e-6


def list_pairs(num_factors: int) -> list[tuple[int, int]]:
    """Returns pairs i <= j of factors: (0, 0), (0, 1), ..., (1, 1), ..."""
    return [*itertools.combinations_with_replacement(range(num_factors), 2)]


def compute_jet_products(
    stage_fn: jacobians.StageFn,
    factors: tf.Tensor,
    jacobian_fn: jacobians.JacobianFn = jacobians.compute_stage_jacobians,
) -> jacobians.StageDict:
    """Returns inner products of all derivatives of stages, float64 [n, K, K].

    K counts F first ones, F (F + 1) / 2 second ones (pairs as in `list_pairs`)
    and F absolute first ones. `jacobian_fn` must be exact.
    """
    columns: dict[str, list[tf.Tensor]] = {}

    # Each column by itself: columns of pairs i > j are then never computed.
    def differentiate(values: tf.Tensor) -> jacobians.StageDict:
        for name, j in jacobian_fn(stage_fn, values).items():
            columns[name] = [j[:, :, i] for i in range(j.shape[-1])]
        return {
            f"{name}/{i}": column
            for name, slopes in columns.items()
            for i, column in enumerate(slopes)
        }

    second = jacobian_fn(differentiate, factors)
    found = {}
    for name, slopes in columns.items():
        pairs = list_pairs(len(slopes))
        bends = [second[f"{name}/{i}"][:, :, j] for i, j in pairs]
        jet = tf.stack([*slopes, *bends, *map(tf.abs, slopes)], axis=1)
        jet = tf.cast(jet, tf.float64)  # [n, K, units]
        found[name] = tf.matmul(jet, jet, transpose_b=True)
    return found


class Interaction:
    """Numbers of a stage at n points; derivatives per range of a factor."""

    def __init__(self, products: Array, ranges: Sequence[float]) -> None:
        count, scale = len(ranges), np.asarray(ranges, float)
        both = [scale[i] * scale[j] for i, j in list_pairs(count)]
        scales = np.concatenate([scale, both, scale])
        is_finite = np.isfinite(products).all(axis=(1, 2), keepdims=True)
        products = np.where(is_finite, products, np.nan)
        products = products * scales[:, None] * scales
        first, second = slice(count), slice(count, -count)
        self.count = count
        self.first = products[:, first, first]
        self.cross = products[:, first, second]
        self.second = products[:, second, second]
        self.absolute = products[:, -count:, -count:]

    def mixed_share(self) -> float:
        """Returns the mixed share; NaN for a stage that does not move."""
        squares = np.diagonal(self.second, axis1=1, axis2=2)  # [n, pairs]
        is_mixed = [i < j for i, j in list_pairs(self.count)]
        slopes = np.trace(self.first, axis1=1, axis2=2).sum()
        total = slopes + squares.sum()
        if not total > 0:  # or NaN
            return float("nan")
        mixed = squares[:, is_mixed].sum()
        return float(mixed / total) if mixed > FLOOR**2 * slopes else 0.0

    def contrast(self) -> tuple[Array, Array]:
        """Returns contrast and relative contrast, [n]; 1 at a dead point."""
        i, j = np.triu_indices(self.count, 1)
        lengths = np.sqrt(np.diagonal(self.first, axis1=1, axis2=2))
        contrast = self.absolute[:, i, j].sum(axis=1)
        largest = (lengths[:, i] * lengths[:, j]).sum(axis=1)
        relative = contrast / np.where(largest > 0, largest, 1.0)
        is_worst = is_dead(self.first) | (relative > 1)  # by an ulp
        return contrast, np.where(is_worst, 1.0, relative)

    def curvature(self) -> tuple[Array, Array]:
        """Returns K, NaN without a surface, and sqrt(det g), [n] each."""
        g = self.first
        squares = g[:, 0, 0] * g[:, 1, 1]
        det = squares - g[:, 0, 1] ** 2
        is_flat = is_dead(g) | ~(det > MIN_SQUARED_SINE * squares)
        inverse = np.linalg.inv(np.where(is_flat[:, None, None], np.eye(2), g))
        tangent = np.swapaxes(self.cross, 1, 2) @ inverse @ self.cross
        normal = self.second - tangent  # <II_ij, II_kl>, [n, 3, 3]
        bend = normal[:, 0, 2] - normal[:, 1, 1]
        det = np.where(is_flat, np.nan, det)
        return bend / det, np.sqrt(det)

    def summarize(self) -> Scores:
        """Returns shares and means, with median and integral of K."""
        contrast, relative = self.contrast()
        numbers = {
            "mixed_share": self.mixed_share(),
            "contrast": mean_or_none(contrast),
            "relative_contrast": mean_or_none(relative),
        }
        if self.count == 2:
            curvature, area = self.curvature()
            known = np.isfinite(curvature)
            median = np.median(curvature[known]) if known.any() else None
            numbers["gaussian_curvature"] = median
            total = mean_or_none((curvature * area)[known])
            # The other points have no area.
            numbers["total_curvature"] = total and total * known.mean()
        return {name: finite_or_none(value) for name, value in numbers.items()}
