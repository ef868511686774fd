"""How factors interact in a stage: second derivatives, contrast, curvature.

For a stage h of factors z, with h_i = dh/dz_i and h_ij = d2h/dz_i dz_j, all
inner products over its units:

    mixed share         sum_{i<j} |h_ij|^2 / sum_{i<=j} |h_ij|^2     in [0, 1]
    contrast            sum_{i<j} <|h_i|, |h_j|>
    relative contrast   contrast / sum_{i<j} |h_i| |h_j|             in [0, 1]
    curvature           K = (<II_11, II_22> - |II_12|^2) / det g

The mixed share (interaction asymmetry, Brady et al. 2025) is 0 if and only if
h is a sum of functions of single factors; sums run over points, too. The
contrast (Brady et al. 2023) is 0 if no unit answers to two factors. K is the
Gaussian curvature of the surface that a stage makes of two factors, by the
equation of Gauss: g_ij = <h_i, h_j> is its metric, II_ij what h_ij has at
right angles to h_1 and h_2. A plane or a cylinder has 0, a sphere of radius r
has 1 / r^2, in whatever coordinates.

A network of ReLUs is piecewise linear: behind a code of single factors its
mixed derivatives are exactly 0, since all interaction sits in the kinks
between the pieces. There the analysis of variance over the grid says how
much is interaction (`tfcomp.analysis.tuning`), which needs no derivative.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfcomp.analysis.finite import finite_or_none, mean_or_none
from tfcomp.analysis.geometry import is_dead
from tfcomp.analysis.jacobians import (
    JacobianFn,
    StageDict,
    StageFn,
    compute_stage_jacobians,
)

# Largest second derivatives over first ones, both per range of the factors,
# that are the rounding of a linear stage.
FLOOR = 1e-6
# Least squared sine of the angle between two directions that span a surface:
# float32 derivatives do not resolve less.
MIN_SQUARED_SINE = 1e-6


@dataclass(frozen=True)
class JetProducts:
    """Inner products of the derivatives of a stage at n points, float64.

    Pairs i <= j of factors are in the order of `list_pairs`.

    Attributes:
        first: <h_i, h_j>, the metric, [n, F, F].
        cross: <h_i, h_jk>, [n, F, pairs].
        second: <h_ij, h_kl>, [n, pairs, pairs].
        absolute: <|h_i|, |h_j|>, [n, F, F].
    """

    first: np.ndarray
    cross: np.ndarray
    second: np.ndarray
    absolute: np.ndarray


def list_pairs(num_factors: int) -> list[tuple[int, int]]:
    """The pairs i <= j of factors: (0, 0), (0, 1), ..., (1, 1), ..."""
    factors = range(num_factors)
    return list(itertools.combinations_with_replacement(factors, 2))


def compute_jet_products(
    stage_fn: StageFn,
    factors: tf.Tensor,
    jacobian_fn: JacobianFn = compute_stage_jacobians,
) -> StageDict:
    """Inner products of all derivatives of every stage, float64 [n, K, K].

    K counts F first ones, F (F + 1) / 2 second ones and F absolute first ones:
    the measures of this module need no more, however many units there are.
    The second ones are Jacobians of Jacobians.
    """

    # Each column by itself, as those of pairs i > j are then never computed.
    def differentiate(values: tf.Tensor) -> StageDict:
        return {
            f"{name}/{i}": jacobian[:, :, i]
            for name, jacobian in jacobian_fn(stage_fn, values).items()
            for i in range(jacobian.shape[-1])
        }

    first = differentiate(factors)
    second = jacobian_fn(differentiate, factors)
    columns: dict[str, list[tf.Tensor]] = {}
    for key, column in first.items():
        columns.setdefault(key.rpartition("/")[0], []).append(column)
    found = {}
    for name, slopes in columns.items():
        bends = [
            second[f"{name}/{i}"][:, :, j] for i, j in list_pairs(len(slopes))
        ]
        # In float64, as in `compute_stage_metrics`.
        jet = tf.stack([*slopes, *bends, *map(tf.abs, slopes)], axis=1)
        jet = tf.cast(jet, tf.float64)  # [n, K, units]
        found[name] = tf.matmul(jet, jet, transpose_b=True)
    return found


def split_products(
    products: np.ndarray, ranges: Sequence[float]
) -> JetProducts:
    """Takes what `compute_jet_products` gives of a stage apart.

    Derivatives become those by factors in units of their ranges [F]:
    so those by pixels and by degrees can be added. Points where one is not
    finite are NaN throughout.
    """
    count, scale = len(ranges), np.asarray(ranges, float)
    both = [scale[i] * scale[j] for i, j in list_pairs(count)]
    scales = np.concatenate([scale, both, scale])
    is_finite = np.isfinite(products).all(axis=(1, 2), keepdims=True)
    products = np.where(is_finite, products, np.nan)
    products = products * scales[:, None] * scales
    first, second = slice(count), slice(count, -count)
    return JetProducts(
        products[:, first, first],
        products[:, first, second],
        products[:, second, second],
        products[:, -count:, -count:],
    )


def compute_mixed_share(jet: JetProducts) -> float:
    """Share of mixed ones in all second derivatives; NaN for a linear stage."""
    squares = np.diagonal(jet.second, axis1=1, axis2=2)  # [n, pairs]
    is_mixed = [i < j for i, j in list_pairs(jet.first.shape[1])]
    slopes = np.trace(jet.first, axis1=1, axis2=2).sum()
    if not squares.sum() > FLOOR**2 * slopes:  # or NaN
        return float("nan")
    return float(squares[:, is_mixed].sum() / squares.sum())


def compute_contrast(jet: JetProducts) -> tuple[np.ndarray, np.ndarray]:
    """Contrast and relative contrast, per point, [n] each.

    The relative one of a dead point is 1, the worst. Both are 0 for a single
    factor.
    """
    i, j = np.triu_indices(jet.first.shape[1], 1)
    lengths = np.sqrt(np.diagonal(jet.first, axis1=1, axis2=2))
    contrast = jet.absolute[:, i, j].sum(axis=1)
    largest = (lengths[:, i] * lengths[:, j]).sum(axis=1)
    relative = contrast / np.where(largest > 0, largest, 1.0)
    worst = is_dead(jet.first) | (relative > 1)  # by an ulp
    return contrast, np.where(worst, 1.0, relative)


def compute_curvature(jet: JetProducts) -> np.ndarray:
    """Gaussian curvature of the surface of two factors, per point, [n].

    NaN where their directions are dead or too close to span a surface.

    Raises:
        ValueError: If there are not two factors.
    """
    if jet.first.shape[1] != 2:
        raise ValueError(f"curvature needs 2 factors, got {jet.first.shape[1]}")
    g = jet.first
    squares = g[:, 0, 0] * g[:, 1, 1]
    det = squares - g[:, 0, 1] ** 2
    is_flat = is_dead(g) | ~(det > MIN_SQUARED_SINE * squares)
    inverse = np.linalg.inv(np.where(is_flat[:, None, None], np.eye(2), g))
    tangent = np.swapaxes(jet.cross, 1, 2) @ inverse @ jet.cross
    normal = jet.second - tangent  # <II_ij, II_kl>, [n, 3, 3]
    bend = normal[:, 0, 2] - normal[:, 1, 1]
    return np.where(is_flat, np.nan, bend / np.where(is_flat, 1.0, det))


def summarize_interaction(jet: JetProducts) -> dict[str, float | None]:
    """The numbers of a stage, over all points.

    `mixed_share`; `contrast` and `relative_contrast`, means; of two factors
    also `gaussian_curvature`, the median over points that have one, and
    `total_curvature`, the mean of K dA over the ranges of both factors: of the
    order of 1 where the surface bends by a radian, whatever its size. None
    where a number does not exist.
    """
    contrast, relative = compute_contrast(jet)
    numbers = {
        "mixed_share": compute_mixed_share(jet),
        "contrast": mean_or_none(contrast),
        "relative_contrast": mean_or_none(relative),
    }
    if jet.first.shape[1] == 2:
        curvature = compute_curvature(jet)
        is_known = np.isfinite(curvature)
        area = np.sqrt(np.linalg.det(jet.first[is_known]))
        known = curvature[is_known]
        numbers["gaussian_curvature"] = np.median(known) if known.size else None
        numbers["total_curvature"] = mean_or_none(known * area)
    return {name: finite_or_none(value) for name, value in numbers.items()}
